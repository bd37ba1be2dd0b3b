// SPDX-License-Identifier: Apache-2.0
#include "distributed/mpi/engine.h"

#include <sched.h>

#include <thread>

namespace treadle::distributed {
namespace {

// How long a wait keeps the processor before it sleeps between looks.
constexpr std::chrono::microseconds kEager(500), kSleep(50);
constexpr size_t kElementsAtOnce = size_t{1} << 30;
constexpr uint64_t kReserved = 1024;  // tags of functions that are made of messages

// The memory of several spans as one piece.
class Packed {
 public:
  Packed(const std::vector<Span>& spans, bool has_values) : spans_(spans) {
    for (const Span& each : spans) {
      is_one_ = is_one_ && each.data == spans[0].data + bytes_;
      bytes_ += each.bytes;
    }
    if (is_one_) return;
    copy_.resize(bytes_);
    if (!has_values) return;
    size_t begin = 0;
    for (const Span& each : spans) {
      std::memcpy(copy_.data() + begin, each.data, each.bytes);
      begin += each.bytes;
    }
  }
  char* data() { return is_one_ ? (spans_.empty() ? nullptr : spans_[0].data) : copy_.data(); }
  size_t bytes() const { return bytes_; }
  void unpack() {
    if (is_one_) return;
    size_t begin = 0;
    for (const Span& each : spans_) {
      std::memcpy(each.data, copy_.data() + begin, each.bytes);
      begin += each.bytes;
    }
  }

 private:
  const std::vector<Span>& spans_;
  std::vector<char> copy_;
  size_t bytes_ = 0;
  bool is_one_ = true;
};

// MPI counts with int: memory is counted in units that are large enough.
size_t unit_of(const std::vector<Span>& a, const std::vector<Span>& b) {
  for (size_t unit = 1; unit <= 4096; unit *= 16) {
    bool fits = true;
    for (const auto* spans : {&a, &b}) {
      size_t total = 0;
      for (const Span& each : *spans) {
        fits = fits && each.bytes % unit == 0;
        total += each.bytes;
      }
      fits = fits && total / unit <= INT_MAX;
    }
    if (fits) return unit;
  }
  throw Failure(Failure::Kind::Backend, "expected fewer than 2^31 elements, got more");
}

struct Counts {
  std::vector<int> counts, begins;
  Counts(const std::vector<Span>& spans, size_t unit) {
    int begin = 0;
    for (const Span& each : spans) {
      counts.push_back(static_cast<int>(each.bytes / unit));
      begins.push_back(begin);
      begin += counts.back();
    }
  }
};

int as_int(size_t value) { return static_cast<int>(value); }

}  // namespace

template <class Abi>
typename Mpi<Abi>::Status MpiEngine<Abi>::finish(typename Functions::Request& request,
                                                 milliseconds timeout,
                                                 const std::atomic<bool>* is_cancelled, int peer,
                                                 bool is_send) {
  const auto start = std::chrono::steady_clock::now();
  typename Functions::Status status{};
  while (true) {
    int is_done = 0;
    const int code = mpi_.test(&request, &is_done, &status);
    if (code != 0) {
      try {
        world_.check(code, "a message");
      } catch (const Failure& failure) {
        throw Failure(failure.kind, failure.what(), peer, is_send);
      }
    }
    if (is_done) return status;
    if (is_aborted_ || (is_cancelled != nullptr && *is_cancelled))
      throw Failure(Failure::Kind::Aborted, "aborted");
    const auto waited = std::chrono::steady_clock::now() - start;
    if (waited > timeout) throw Failure(Failure::Kind::Timeout, "too late", peer, is_send);
    if (waited < kEager)
      sched_yield();
    else
      std::this_thread::sleep_for(kSleep);
  }
}

// A message whose request is still active when it goes stays with MPI, as does its memory, which
// the program keeps.
template <class Abi>
class MpiEngine<Abi>::Posted final : public Message {
 public:
  Posted(MpiEngine& engine, size_t bytes, int peer, bool is_send)
      : engine_(engine), bytes_(bytes), peer_(peer), is_send_(is_send) {}
  int wait(milliseconds timeout) override {
    const auto status = engine_.finish(request, timeout, &is_cancelled_, peer_, is_send_);
    if (is_send_) return peer_;
    int count = 0;
    engine_.world_.check(engine_.mpi_.get_count(&status, engine_.world_.type_of(unit), &count),
                         "MPI_Get_count");
    if (static_cast<size_t>(count) * unit != bytes_)
      throw Failure(Failure::Kind::Backend, "expected " + std::to_string(bytes_) + " bytes, got " +
                                                std::to_string(static_cast<size_t>(count) * unit) +
                                                ": the tensors differ in shape");
    return status.source;
  }
  void cancel() override { is_cancelled_ = true; }

  typename Functions::Request request{};
  size_t unit = 1;

 private:
  MpiEngine& engine_;
  size_t bytes_;
  int peer_;
  bool is_send_;
  std::atomic<bool> is_cancelled_ = false;
};

// The dtype and the tag of the program together.
template <class Abi>
int MpiEngine<Abi>::tag_of(const Call& call) const {
  const uint64_t limit = static_cast<uint64_t>(world_.tag_limit) >> 8;
  const uint64_t reserved = std::min(kReserved, limit / 2);
  uint64_t tag = static_cast<uint64_t>(call.tag);
  if (call.tag < 0)
    tag = limit - 1 - static_cast<uint64_t>(-call.tag) % reserved;
  else if (tag >= limit - reserved)
    throw Failure(Failure::Kind::Backend, "expected tag < " + std::to_string(limit - reserved) +
                                              ", got " + std::to_string(tag));
  return static_cast<int>(tag << 8 | static_cast<uint64_t>(call.dtype));
}

template <class Abi>
std::unique_ptr<Message> MpiEngine<Abi>::send(const Call& call) {
  const Span span = call.inputs[0];
  auto message = std::make_unique<Posted>(*this, span.bytes, call.root, true);
  message->unit = unit_of(call.inputs, {});
  world_.check(
      mpi_.isend(span.data, as_int(span.bytes / message->unit), world_.type_of(message->unit),
                 call.root, tag_of(call), comm_, &message->request),
      "MPI_Isend");
  return message;
}

template <class Abi>
std::unique_ptr<Message> MpiEngine<Abi>::receive(const Call& call) {
  const Span span = call.outputs[0];
  auto message = std::make_unique<Posted>(*this, span.bytes, call.root, false);
  message->unit = unit_of(call.outputs, {});
  const int source = call.root == kAnyRank ? Abi::kAnySource : call.root;
  world_.check(
      mpi_.irecv(span.data, as_int(span.bytes / message->unit), world_.type_of(message->unit),
                 source, tag_of(call), comm_, &message->request),
      "MPI_Irecv");
  return message;
}

// The least fingerprint, and the least of their complements, are those of all where all are equal.
template <class Abi>
void MpiEngine<Abi>::compare(const Call& call) {
  const uint64_t key = call.fingerprint_of_all();
  struct Numbers {
    uint64_t mine[2], least[2];
  };
  auto numbers = std::make_unique<Numbers>(Numbers{{key, ~key}, {}});
  typename Functions::Request request{};
  world_.check(mpi_.iallreduce(numbers->mine, numbers->least, 2, world_.type_of(sizeof(uint64_t)),
                               world_.op_of(ReduceOp::Min, ScalarType::UInt64), comm_, &request),
               "MPI_Iallreduce");
  try {
    finish(request, call.timeout, nullptr, kAnyRank, false);
  } catch (...) {
    (void)numbers.release();  // MPI writes there when the other ranks come
    throw;
  }
  if (numbers->least[0] != numbers->mine[0] || numbers->least[1] != numbers->mine[1])
    throw Failure(Failure::Kind::Backend,
                  "expected the same call in all ranks, got another function, shape, dtype, "
                  "operation or root in some");
}

template <class Abi>
void MpiEngine<Abi>::run(const Call& call) {
  if (has_failed_ || is_aborted_)
    throw Failure(is_aborted_ ? Failure::Kind::Aborted : Failure::Kind::Network,
                  "a call that not all ranks came to");
  try {
    compare(call);
  } catch (const Failure& failure) {
    if (failure.kind != Failure::Kind::Backend) has_failed_ = true;
    throw;
  }
  // MPI refuses memory that is sent and received in one call.
  if (!call.has_overlap(kAnyRank)) return run_compared(call);
  std::vector<char> copies;
  run_compared(call.with_copies(copies));
}

template <class Abi>
void MpiEngine<Abi>::run_compared(const Call& call) {
  switch (call.function) {
    case Function::AllReduce:
      return all_reduce(call, kAnyRank);
    case Function::Reduce:
      return all_reduce(call, call.root);
    case Function::ReduceScatter:
      return reduce_scatter(call);
    case Function::Barrier:
      return;  // all ranks have compared
    default:
      return move(call);
  }
}

template <class Abi>
void MpiEngine<Abi>::all_reduce(const Call& call, int root) {
  const Span in = call.inputs[0], out = call.outputs[0];
  const bool is_root = root == kAnyRank || root == rank;
  const size_t element = element_size(call.dtype);
  const bool scales = call.op == ReduceOp::PremulSum;
  const ReduceOp op = scales || call.op == ReduceOp::Average ? ReduceOp::Sum : call.op;
  std::vector<char> scaled(scales ? in.bytes : 0);
  const char* from = in.data;
  if (scales) {
    reduce(call.op, call.dtype, call.factor, 1, {in.data}, scaled.data(), in.bytes);
    from = scaled.data();
  }
  const auto type = world_.type_of(element);
  const auto step = world_.op_of(op, call.dtype);
  const size_t count = in.bytes / element;
  for (size_t begin = 0; begin < count; begin += kElementsAtOnce) {
    const int n = as_int(std::min(kElementsAtOnce, count - begin));
    char* to = out.data + begin * element;
    const void* source = from + begin * element;
    if (root == kAnyRank) {
      if (source == to) source = Abi::in_place();
      world_.check(mpi_.allreduce(source, to, n, type, step, comm_), "MPI_Allreduce");
    } else {
      if (is_root && source == to) source = Abi::in_place();
      world_.check(mpi_.reduce(source, is_root ? to : nullptr, n, type, step, root, comm_),
                   "MPI_Reduce");
    }
  }
  if (call.op == ReduceOp::Average && is_root)
    reduce(call.op, call.dtype, 1, size, {out.data}, out.data, out.bytes);
}

template <class Abi>
void MpiEngine<Abi>::reduce_scatter(const Call& call) {
  Packed inputs(call.inputs, true);
  const size_t element = element_size(call.dtype);
  if (inputs.bytes() / element > INT_MAX)
    throw Failure(Failure::Kind::Backend, "expected fewer than 2^31 elements, got more");
  const bool scales = call.op == ReduceOp::PremulSum;
  const ReduceOp op = scales || call.op == ReduceOp::Average ? ReduceOp::Sum : call.op;
  std::vector<char> scaled(scales ? inputs.bytes() : 0);
  if (scales)
    reduce(call.op, call.dtype, call.factor, 1, {inputs.data()}, scaled.data(), inputs.bytes());
  const Counts counts(call.inputs, element);
  const Span out = call.outputs[0];
  world_.check(
      mpi_.reduce_scatter(scales ? scaled.data() : inputs.data(), out.data, counts.counts.data(),
                          world_.type_of(element), world_.op_of(op, call.dtype), comm_),
      "MPI_Reduce_scatter");
  if (call.op == ReduceOp::Average)
    reduce(call.op, call.dtype, 1, size, {out.data}, out.data, out.bytes);
}

// The functions that only move bytes.
template <class Abi>
void MpiEngine<Abi>::move(const Call& call) {
  const size_t unit = unit_of(call.inputs, call.outputs);
  const auto type = world_.type_of(unit);
  Packed inputs(call.inputs, true);
  Packed outputs(call.outputs, false);
  const Counts in(call.inputs, unit), out(call.outputs, unit);
  const auto total = [&](const Packed& packed) { return as_int(packed.bytes() / unit); };
  switch (call.function) {
    case Function::Broadcast:
      return world_.check(mpi_.bcast(call.outputs[0].data, total(outputs), type, call.root, comm_),
                          "MPI_Bcast");
    case Function::AllGather:
      world_.check(mpi_.allgatherv(inputs.data(), total(inputs), type, outputs.data(),
                                   out.counts.data(), out.begins.data(), type, comm_),
                   "MPI_Allgatherv");
      break;
    case Function::Gather:
      world_.check(mpi_.gatherv(inputs.data(), total(inputs), type, outputs.data(),
                                out.counts.data(), out.begins.data(), type, call.root, comm_),
                   "MPI_Gatherv");
      break;
    case Function::Scatter:
      world_.check(mpi_.scatterv(inputs.data(), in.counts.data(), in.begins.data(), type,
                                 outputs.data(), total(outputs), type, call.root, comm_),
                   "MPI_Scatterv");
      break;
    case Function::AllToAll:
      world_.check(
          mpi_.alltoallv(inputs.data(), in.counts.data(), in.begins.data(), type, outputs.data(),
                         out.counts.data(), out.begins.data(), type, comm_),
          "MPI_Alltoallv");
      break;
    default:
      throw Failure(Failure::Kind::Backend, "expected a collective function");
  }
  outputs.unpack();
}

template class MpiEngine<OpenMpi>;
template class MpiEngine<Mpich>;

}  // namespace treadle::distributed
