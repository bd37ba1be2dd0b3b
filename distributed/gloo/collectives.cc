// The values of all ranks are reduced in the order of ranks, whatever the size: a result has the
// same bits on every rank and in each run.
//
// SPDX-License-Identifier: Apache-2.0
#include "distributed/gloo/collectives.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <utility>

#include "distributed/reduction.h"

namespace treadle::distributed {
namespace {

// Up to so many bytes every rank sends everything to every other one, in one step. Between two
// ranks that is no more than what they send in two steps.
constexpr size_t flat(int size) { return size == 2 ? 65536 : 16384; }
// Larger tensors go in segments of so many bytes: one is reduced while the next is on its way.
// Those of all ranks together have at most 8 MiB.
size_t segment_of(int size) {
  constexpr size_t kLargest = 1 << 20, kLeast = 65536, kTogether = 8 << 20;
  return std::clamp(kTogether / static_cast<size_t>(size) / kLeast * kLeast, kLeast, kLargest);
}

using Direction = Transfer::Direction;

// A message that was begun: a transfer, or a small one that comes to a mailbox.
struct Begun {
  std::unique_ptr<Transfer> transfer;
  int peer;
  bool is_done;
};

// The messages of one call. A step is a number that tells messages between two ranks apart.
class Exchange {
 public:
  Exchange(Connection& connection, const Call& call)
      : rank(connection.rank),
        size(connection.size),
        connection_(connection),
        key_(call.fingerprint()),
        end_(std::chrono::steady_clock::now() + call.timeout) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // There is no message without bytes: null. Small messages between two ranks come in the order in
  // which they go; those of a `train` of several come in any order.
  Begun* receive(int from, void* data, size_t bytes, uint64_t step = 0, bool is_train = false) {
    if (bytes == 0) return nullptr;
    if (is_train || bytes > connection_.largest_small())
      return start(Direction::Receive, from, data, bytes, step);
    connection_.mailbox(from).expect(mixed(key_, step), data, bytes);
    begun_.push_back({nullptr, from, false});
    small_[static_cast<size_t>(from)].push_back(&begun_.back());
    return &begun_.back();
  }
  Begun* send(int to, const void* data, size_t bytes, uint64_t step = 0, bool is_train = false) {
    if (bytes == 0) return nullptr;
    if (is_train || bytes > connection_.largest_small())
      return start(Direction::Send, to, const_cast<void*>(data), bytes, step);
    in_time(to, [&] { connection_.mailbox(to).send(mixed(key_, step), data, bytes); });
    return nullptr;
  }
  void wait(Begun* begun) {
    if (begun == nullptr || begun->is_done) return;
    if (begun->transfer) {
      const auto left = std::chrono::ceil<milliseconds>(end_ - std::chrono::steady_clock::now());
      begun->transfer->wait(std::max(left, milliseconds(1)));
      begun->is_done = true;
      return;
    }
    // Those from one rank come in order.
    std::deque<Begun*>& coming = small_[static_cast<size_t>(begun->peer)];
    while (!begun->is_done) {
      in_time(begun->peer, [&] { connection_.mailbox(begun->peer).take(); });
      coming.front()->is_done = true;
      coming.pop_front();
    }
  }
  void finish() {
    // Sends come last: they have mostly gone when the messages of the others are there.
    for (const Direction direction : {Direction::Receive, Direction::Send})
      for (Begun& each : begun_)
        if (!each.transfer || each.transfer->direction == direction) wait(&each);
    begun_.clear();
    if (has_alarm_) connection_.alarm().clear();
  }
  // Memory until the end of the call, which is written before it is read.
  char* scratch(size_t bytes) { return connection_.scratch(bytes); }
  // The ranks after this one first, so that not all turn to the same.
  int peer(int i) const { return (rank + i) % size; }

  const int rank, size;

 private:
  Begun* start(Direction direction, int peer, void* data, size_t bytes, uint64_t step) {
    auto transfer = std::make_unique<Transfer>(connection_, direction, data, bytes);
    transfer->start(peer, mixed(key_, step));
    begun_.push_back({std::move(transfer), peer, false});
    return &begun_.back();
  }
  template <class F>
  void in_time(int peer, F&& f) {
    if (!std::exchange(has_alarm_, true)) connection_.alarm().set(end_);
    try {
      f();
    } catch (const Failure& failure) {
      throw Failure(failure.kind, failure.what(), peer);
    } catch (const std::exception& error) {
      const bool is_late = connection_.alarm().has_rung();
      throw Failure(is_late ? Failure::Kind::Timeout : Failure::Kind::Network,
                    Connection::reason_of(error), peer);
    }
  }

  Connection& connection_;
  const uint64_t key_;
  const std::chrono::steady_clock::time_point end_;
  std::deque<Begun> begun_;
  std::map<size_t, std::deque<Begun*>> small_;
  bool has_alarm_ = false;
};

void copy(const Span& to, const Span& from) {
  if (to.data != from.data) std::memcpy(to.data, from.data, std::min(to.bytes, from.bytes));
}

void reduce_into(const Call& call, int ranks, const std::vector<const void*>& values, void* out,
                 size_t bytes) {
  reduce(call.op, call.dtype, call.factor, ranks, values, out, bytes);
}

// Where the values of a rank begin: elements are divided as evenly as possible.
class Parts {
 public:
  Parts(size_t bytes, size_t element, int size)
      : count_(bytes / element), element_(element), size_(static_cast<size_t>(size)) {}
  size_t begin(int part) const { return count_ * static_cast<size_t>(part) / size_ * element_; }
  size_t bytes(int part) const { return begin(part + 1) - begin(part); }

 private:
  size_t count_, element_, size_;
};

// All values go to all ranks, or to the root alone.
void reduce_flat(Exchange& exchange, const Call& call, bool is_root, bool to_all) {
  const size_t bytes = call.inputs[0].bytes;
  char* scratch = is_root ? exchange.scratch(bytes * static_cast<size_t>(exchange.size)) : nullptr;
  std::vector<const void*> values(static_cast<size_t>(exchange.size));
  std::vector<Begun*> sends, receives;
  if (is_root) {
    for (int i = 1; i < exchange.size; ++i) {
      const int peer = exchange.peer(i);
      char* place = scratch + bytes * static_cast<size_t>(peer);
      values[static_cast<size_t>(peer)] = place;
      receives.push_back(exchange.receive(peer, place, bytes));
    }
    values[static_cast<size_t>(exchange.rank)] = call.inputs[0].data;
  }
  for (int i = 1; i < exchange.size; ++i) {
    const int peer = exchange.peer(i);
    if (to_all || (!is_root && peer == call.root))
      sends.push_back(exchange.send(peer, call.inputs[0].data, bytes));
  }
  for (Begun* each : receives) exchange.wait(each);
  // The result overwrites what is sent.
  for (Begun* each : sends) exchange.wait(each);
  if (is_root) reduce_into(call, exchange.size, values, call.outputs[0].data, bytes);
  exchange.finish();
}

// Rank r gets the values of all for its part, reduces them and, with `gathers`, sends the result.
//
// All segments are offered at once, and all results are awaited at once: a rank that is busy with
// its own part does not hold up the others. What limits the memory is that values are received in
// two segments by turns.
class PartsInSegments {
 public:
  PartsInSegments(Exchange& exchange, const Call& call, std::vector<Span> inputs, Span output,
                  std::vector<Span> gathered, int root)
      : exchange_(exchange),
        call_(call),
        inputs_(std::move(inputs)),
        output_(output),
        gathered_(std::move(gathered)),
        root_(root),
        segment_(segment_of(exchange.size) / element_size(call.dtype) * element_size(call.dtype)),
        place_((std::min(segment_, output.bytes) + 63) / 64 * 64) {
    for (const Span& each : inputs_)
      segments_ = std::max(segments_, (each.bytes + segment_ - 1) / segment_);
    scratch_ = exchange_.scratch(2 * place_ * index(exchange_.size));
  }

  void run() {
    for (size_t k = 0; k < std::min<size_t>(2, segments_); ++k) receive_values(k);
    for (size_t k = 0; k < segments_; ++k) offer(k);
    for (size_t k = 0; k < segments_; ++k) {
      for (Begun* each : receives_[k % 2]) exchange_.wait(each);
      const Span mine = piece(output_, k);
      std::vector<const void*> values;
      for (int peer = 0; peer < exchange_.size; ++peer)
        values.push_back(peer == exchange_.rank ? piece(inputs_[index(peer)], k).data
                                                : place(peer, k));
      if (mine.bytes > 0) reduce_into(call_, exchange_.size, values, mine.data, mine.bytes);
      if (!gathered_.empty())
        for (int i = 1; i < exchange_.size; ++i)
          if (wants(exchange_.peer(i)))
            exchange_.send(exchange_.peer(i), mine.data, mine.bytes, 2 * k + 1, is_train());
      if (k + 2 < segments_) receive_values(k + 2);
    }
    exchange_.finish();
  }

 private:
  static size_t index(int rank) { return static_cast<size_t>(rank); }
  bool is_train() const { return segments_ > 1; }
  bool wants(int rank) const { return root_ == kAnyRank || root_ == rank; }
  Span piece(const Span& whole, size_t k) const {
    const size_t begin = std::min(k * segment_, whole.bytes);
    return {whole.data + begin, std::min(segment_, whole.bytes - begin)};
  }
  char* place(int peer, size_t k) { return scratch_ + place_ * (2 * index(peer) + k % 2); }
  void receive_values(size_t k) {
    receives_[k % 2].clear();
    const size_t bytes = piece(output_, k).bytes;
    for (int i = 1; i < exchange_.size; ++i) {
      const int peer = exchange_.peer(i);
      receives_[k % 2].push_back(exchange_.receive(peer, place(peer, k), bytes, 2 * k, is_train()));
    }
  }
  void offer(size_t k) {
    for (int i = 1; i < exchange_.size; ++i) {
      const int peer = exchange_.peer(i);
      const Span theirs = piece(inputs_[index(peer)], k);
      exchange_.send(peer, theirs.data, theirs.bytes, 2 * k, is_train());
      if (!gathered_.empty() && wants(exchange_.rank)) {
        // The result comes to where the values were. They have all gone by then: the other rank
        // sends it after it has received them.
        const Span result = piece(gathered_[index(peer)], k);
        exchange_.receive(peer, result.data, result.bytes, 2 * k + 1, is_train());
      }
    }
  }

  Exchange& exchange_;
  const Call& call_;
  std::vector<Span> inputs_;
  Span output_;
  std::vector<Span> gathered_;
  int root_;
  size_t segment_, place_;
  size_t segments_ = 0;
  char* scratch_;
  std::vector<Begun*> receives_[2];
};

std::vector<Span> parts_of(const Span& whole, const Parts& parts, int size) {
  std::vector<Span> found;
  for (int part = 0; part < size; ++part)
    found.push_back({whole.data + parts.begin(part), parts.bytes(part)});
  return found;
}

void all_reduce(Exchange& exchange, const Call& call, int root) {
  const Span in = call.inputs[0], out = call.outputs[0];
  const bool is_root = root == kAnyRank || root == exchange.rank;
  if (exchange.size == 1) {
    reduce_into(call, 1, {in.data}, out.data, in.bytes);
    return exchange.finish();
  }
  if (in.bytes <= flat(exchange.size))
    return reduce_flat(exchange, call, is_root, root == kAnyRank);
  const Parts parts(in.bytes, element_size(call.dtype), exchange.size);
  const std::vector<Span> from = parts_of(in, parts, exchange.size);
  if (is_root) {
    const std::vector<Span> to = parts_of(out, parts, exchange.size);
    PartsInSegments(exchange, call, from, to[static_cast<size_t>(exchange.rank)], to, root).run();
  } else {
    // The tensor of a rank that is not the root stays as it is.
    const size_t bytes = from[static_cast<size_t>(exchange.rank)].bytes;
    const std::unique_ptr<char[]> result(new char[bytes]);
    PartsInSegments(exchange, call, from, {result.get(), bytes}, from, root).run();
  }
}

void reduce_scatter(Exchange& exchange, const Call& call) {
  if (exchange.size == 1) {
    reduce_into(call, 1, {call.inputs[0].data}, call.outputs[0].data, call.outputs[0].bytes);
    return exchange.finish();
  }
  PartsInSegments(exchange, call, call.inputs, call.outputs[0], {}, kAnyRank).run();
}

// Small tensors go from the ranks that have them to those that do not, twice as many each time;
// large ones from rank to rank, in segments, so that each connection carries them once.
void broadcast(Exchange& exchange, const Call& call) {
  const Span whole = call.outputs[0];
  const int place = (exchange.rank - call.root + exchange.size) % exchange.size;
  const auto rank_at = [&](int p) { return (p + call.root) % exchange.size; };
  if (whole.bytes <= flat(exchange.size) || exchange.size == 2) {
    int step = 1;
    if (place > 0) {
      while (2 * step <= place) step *= 2;
      exchange.wait(exchange.receive(rank_at(place - step), whole.data, whole.bytes));
      step *= 2;
    }
    for (; place + step < exchange.size; step *= 2)
      exchange.send(rank_at(place + step), whole.data, whole.bytes);
    return exchange.finish();
  }
  std::deque<Begun*> coming;
  const size_t segment = segment_of(exchange.size);
  const size_t segments = (whole.bytes + segment - 1) / segment;
  const auto piece = [&](size_t k) {
    return Span{whole.data + k * segment, std::min(segment, whole.bytes - k * segment)};
  };
  if (place > 0)
    for (size_t k = 0; k < segments; ++k)
      coming.push_back(exchange.receive(rank_at(place - 1), piece(k).data, piece(k).bytes, k));
  for (size_t k = 0; k < segments; ++k) {
    if (place > 0) exchange.wait(coming[k]);
    if (place + 1 < exchange.size)
      exchange.send(rank_at(place + 1), piece(k).data, piece(k).bytes, k);
  }
  exchange.finish();
}

// Pairs of ranks exchange what the spans say; a function without inputs for one side has none.
//
// Sends begin before receives. In the other order data would come while the thread of the call
// still holds Gloo's lock of the connection, for which Gloo's thread spins.
void all_gather(Exchange& exchange, const Call& call) {
  const Span mine = call.inputs[0];
  for (int i = 1; i < exchange.size; ++i) exchange.send(exchange.peer(i), mine.data, mine.bytes);
  for (int i = 1; i < exchange.size; ++i) {
    const Span& theirs = call.outputs[static_cast<size_t>(exchange.peer(i))];
    exchange.receive(exchange.peer(i), theirs.data, theirs.bytes);
  }
  copy(call.outputs[static_cast<size_t>(exchange.rank)], mine);
  exchange.finish();
}

void gather(Exchange& exchange, const Call& call) {
  if (exchange.rank != call.root) {
    exchange.send(call.root, call.inputs[0].data, call.inputs[0].bytes);
    return exchange.finish();
  }
  for (int i = 1; i < exchange.size; ++i) {
    const Span& theirs = call.outputs[static_cast<size_t>(exchange.peer(i))];
    exchange.receive(exchange.peer(i), theirs.data, theirs.bytes);
  }
  copy(call.outputs[static_cast<size_t>(exchange.rank)], call.inputs[0]);
  exchange.finish();
}

void scatter(Exchange& exchange, const Call& call) {
  if (exchange.rank != call.root) {
    exchange.receive(call.root, call.outputs[0].data, call.outputs[0].bytes);
    return exchange.finish();
  }
  for (int i = 1; i < exchange.size; ++i) {
    const Span& theirs = call.inputs[static_cast<size_t>(exchange.peer(i))];
    exchange.send(exchange.peer(i), theirs.data, theirs.bytes);
  }
  copy(call.outputs[0], call.inputs[static_cast<size_t>(exchange.rank)]);
  exchange.finish();
}

void all_to_all(Exchange& exchange, const Call& call) {
  for (int i = 1; i < exchange.size; ++i) {
    const int peer = exchange.peer(i);
    const Span& to = call.inputs[static_cast<size_t>(peer)];
    exchange.send(peer, to.data, to.bytes);
  }
  for (int i = 1; i < exchange.size; ++i) {
    const int peer = exchange.peer(i);
    const Span& from = call.outputs[static_cast<size_t>(peer)];
    exchange.receive(peer, from.data, from.bytes);
  }
  const auto me = static_cast<size_t>(exchange.rank);
  copy(call.outputs[me], call.inputs[me]);
  exchange.finish();
}

// After step k a rank knows of the 2^(k+1) ranks before it.
void barrier(Exchange& exchange) {
  char sent = 0, received = 0;
  for (int step = 1; step < exchange.size; step *= 2) {
    Begun* coming = exchange.receive(exchange.peer(exchange.size - step), &received, 1,
                                     static_cast<uint64_t>(step));
    exchange.send(exchange.peer(step), &sent, 1, static_cast<uint64_t>(step));
    exchange.wait(coming);
  }
  exchange.finish();
}

void run(Exchange& exchange, const Call& call) {
  switch (call.function) {
    case Function::AllReduce:
      return all_reduce(exchange, call, kAnyRank);
    case Function::Reduce:
      return all_reduce(exchange, call, call.root);
    case Function::Broadcast:
      return broadcast(exchange, call);
    case Function::AllGather:
      return all_gather(exchange, call);
    case Function::Gather:
      return gather(exchange, call);
    case Function::Scatter:
      return scatter(exchange, call);
    case Function::ReduceScatter:
      return reduce_scatter(exchange, call);
    case Function::AllToAll:
      return all_to_all(exchange, call);
    case Function::Barrier:
      return barrier(exchange);
    case Function::Send:
    case Function::Receive:
      break;
  }
  throw Failure(Failure::Kind::Backend, "expected a collective function");
}

}  // namespace

// After an error Gloo must not write to memory that is gone: its connections are closed first.
void run_collective(Connection& connection, const Call& call) {
  Exchange exchange(connection, call);
  try {
    run(exchange, call);
  } catch (const std::exception& error) {
    connection.fail(error.what());
    throw;
  }
}

}  // namespace treadle::distributed
