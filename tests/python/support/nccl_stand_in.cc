// A stand-in for GPUs and for NCCL, for tests: the device "cuda" in memory of the host, with
// streams that are threads, and NCCL's functions between processes of this machine, over sockets.
// As with NCCL, calls return before they are done, ranks that differ in their calls or do not come
// wait for ever, and a process that is gone is an error of the communicator.
//
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <treadle/plugin.hpp>
#include <vector>

namespace {
using namespace treadle::plugin;
using Task = std::function<void()>;

// ---- The device ---------------------------------------------------------------------------------

// A queue of work, done in order by a thread. It lives as long as the process.
class Stream {
 public:
  Stream() {
    std::thread([this] { work(); }).detach();
  }
  void push(Task task) {
    const std::lock_guard<std::mutex> lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_all();
  }
  bool idle() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return tasks_.empty();
  }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return tasks_.empty(); });
  }

 private:
  void work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return !tasks_.empty(); });
      const Task task = tasks_.front();
      lock.unlock();
      task();
      lock.lock();
      tasks_.pop_front();
      changed_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
};

Stream& stream_of(uint64_t id) {
  static Stream* const usual = new Stream;
  return id == 0 ? *usual : *reinterpret_cast<Stream*>(id);
}

// How often an event was recorded, and how often its place in a stream was reached.
struct Event {
  std::atomic<int> recorded{0}, passed{0};
};
using SharedEvent = std::shared_ptr<Event>;

void pause() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

class Device final : public Backend {
 public:
  int32_t device_count() override { return 2; }
  void* allocate(int32_t, size_t nbytes) override { return std::malloc(nbytes); }
  void deallocate(int32_t, void* storage, size_t) override { std::free(storage); }
  bool copy(treadle_place to, treadle_place from, size_t nbytes, bool) override {
    stream_of(now_).wait();
    std::memmove(static_cast<char*>(to.storage) + to.offset,
                 static_cast<char*>(from.storage) + from.offset, nbytes);
    return true;
  }
  void synchronize(int32_t) override { stream_of(0).wait(); }
  uint64_t stream_create(int32_t, int32_t) override {
    return reinterpret_cast<uint64_t>(new Stream);
  }
  void stream_set(int32_t, uint64_t stream) override { now_ = stream; }
  bool stream_query(int32_t, uint64_t stream) override { return stream_of(stream).idle(); }
  void stream_synchronize(int32_t, uint64_t stream) override { stream_of(stream).wait(); }
  void* event_create(int32_t, bool) override { return new SharedEvent(std::make_shared<Event>()); }
  void event_destroy(int32_t, void* event) override { delete static_cast<SharedEvent*>(event); }
  void event_record(int32_t, void* event, uint64_t stream) override {
    const SharedEvent e = *static_cast<SharedEvent*>(event);
    ++e->recorded;
    stream_of(stream).push([e] { ++e->passed; });
  }
  void event_wait(int32_t, void* event, uint64_t stream) override {
    const SharedEvent e = *static_cast<SharedEvent*>(event);
    const int until = e->recorded;
    stream_of(stream).push([e, until] {
      while (e->passed < until) pause();
    });
  }
  bool event_query(void* event) override {
    const SharedEvent& e = *static_cast<SharedEvent*>(event);
    return e->passed == e->recorded;
  }

 private:
  static thread_local uint64_t now_;
};
thread_local uint64_t Device::now_ = 0;

void start() {
  BackendDescription description;
  description.name = "cuda";
  description.host_visible = true;
  register_backend<Device>(description);
}

// ---- Communicators ------------------------------------------------------------------------------

enum Result { kSuccess = 0, kInvalidUsage = 5, kRemote = 6, kInProgress = 7 };

struct Id {
  char folder[128];
};
struct Config {
  size_t size;
  unsigned magic, version;
  int blocking;
};

struct Piece {
  int peer;
  char* data;
  size_t bytes;
};

// The head of a message, which goes before its bytes.
struct Head {
  uint64_t kind, bytes;
};

struct State {
  int rank, size;
  std::string folder;
  std::atomic<int> result{kInProgress};
  std::atomic<bool> aborted{false};
  std::vector<int> out, in;
  int listener = -1;
  std::map<int, double> factors;
  std::thread joining;

  ~State() {
    for (const int each : out) close(each);
    for (const int each : in) close(each);
    close(listener);
  }
  void fail(int with) {
    int expected = kSuccess;
    result.compare_exchange_strong(expected, with);
  }
  static sockaddr_un address(const std::string& folder, int rank) {
    sockaddr_un made{};
    made.sun_family = AF_UNIX;
    const std::string path = folder + "/" + std::to_string(rank);
    std::strncpy(made.sun_path, path.c_str(), sizeof made.sun_path - 1);
    return made;
  }

  void join() {
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un own = address(folder, rank);
    bind(listener, reinterpret_cast<sockaddr*>(&own), sizeof own);
    listen(listener, size);
    out.assign(static_cast<size_t>(size), -1);
    in = out;
    for (int peer = 0; peer < size; ++peer) {
      if (peer == rank) continue;
      int& to = out[static_cast<size_t>(peer)];
      to = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_un there = address(folder, peer);
      while (connect(to, reinterpret_cast<sockaddr*>(&there), sizeof there) != 0) {
        if (aborted) return;
        pause();
      }
      if (write(to, &rank, sizeof rank) != sizeof rank) return;
    }
    for (int left = size - 1; left > 0;) {
      pollfd one{listener, POLLIN, 0};
      if (aborted) return;
      if (poll(&one, 1, 5) < 1) continue;
      const int from = accept(listener, nullptr, nullptr);
      int peer = 0;
      if (read(from, &peer, sizeof peer) != sizeof peer) return;
      in[static_cast<size_t>(peer)] = from;
      --left;
    }
    result = kSuccess;
  }

  // Sends and receives all pieces, those of two ranks in order. False after an error or an abort.
  bool exchange(uint64_t kind, const std::vector<Piece>& sends, const std::vector<Piece>& takes) {
    struct Side {
      std::deque<Piece> pieces;
      Head head{};
      size_t at = 0;  // bytes of the head and the first piece that have gone
    };
    std::vector<Side> going(static_cast<size_t>(size)), coming(going);
    for (const Piece& each : sends) going[static_cast<size_t>(each.peer)].pieces.push_back(each);
    for (const Piece& each : takes) coming[static_cast<size_t>(each.peer)].pieces.push_back(each);
    auto &from_me = going[static_cast<size_t>(rank)].pieces,
         &to_me = coming[static_cast<size_t>(rank)].pieces;
    for (; !from_me.empty() && !to_me.empty(); from_me.pop_front(), to_me.pop_front())
      std::memmove(to_me.front().data, from_me.front().data, from_me.front().bytes);
    while (true) {
      bool is_done = true, moved = false;
      for (size_t peer = 0; peer < going.size(); ++peer) {
        for (Side* side : {&going[peer], &coming[peer]}) {
          if (side->pieces.empty()) continue;
          is_done = false;
          const bool is_out = side == &going[peer];
          Piece& piece = side->pieces.front();
          if (side->at == 0 && is_out) side->head = {kind, piece.bytes};
          const bool in_head = side->at < sizeof(Head);
          char* const data = in_head ? reinterpret_cast<char*>(&side->head) + side->at
                                     : piece.data + (side->at - sizeof(Head));
          const size_t left = (in_head ? sizeof(Head) : sizeof(Head) + piece.bytes) - side->at;
          const ssize_t n = is_out ? send(out[peer], data, left, MSG_DONTWAIT | MSG_NOSIGNAL)
                                   : recv(in[peer], data, left, MSG_DONTWAIT);
          const bool is_later = n < 0 && (errno == EAGAIN || errno == EINTR);
          if (is_later) continue;
          if (n <= 0 && left > 0) return fail(kRemote), false;
          side->at += static_cast<size_t>(n);
          moved = true;
          // Ranks that differ wait for ever, or write over memory; here they wait.
          if (!is_out && side->at == sizeof(Head) &&
              (side->head.kind != kind || side->head.bytes != piece.bytes)) {
            while (!aborted) pause();
            return false;
          }
          if (side->at == sizeof(Head) + piece.bytes) {
            side->pieces.pop_front();
            side->at = 0;
          }
        }
      }
      if (aborted) return false;
      if (is_done) return true;
      if (!moved) pause();
    }
  }
};

// ---- Arithmetic ---------------------------------------------------------------------------------

enum Op { kSum, kProduct, kMax, kMin, kAverage, kFirstMade };

template <class T, class Wide>
void combine(State& state, int op, const std::vector<const char*>& values, char* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const auto at = [&](size_t rank) {
      T value;
      std::memcpy(&value, values[rank] + i * sizeof(T), sizeof(T));
      return static_cast<Wide>(value);
    };
    const Wide factor = op >= kFirstMade ? static_cast<Wide>(state.factors.at(op)) : Wide(1);
    Wide sum = at(0) * factor;
    for (size_t rank = 1; rank < values.size(); ++rank) {
      const Wide next = at(rank);
      if (op == kProduct)
        sum *= next;
      else if (op == kMax)
        sum = std::max(sum, next);
      else if (op == kMin)
        sum = std::min(sum, next);
      else
        sum += next * factor;
    }
    if (op == kAverage) sum /= static_cast<Wide>(values.size());
    const T result = static_cast<T>(sum);
    std::memcpy(to + i * sizeof(T), &result, sizeof(T));
  }
}

using Combine = void (*)(State&, int, const std::vector<const char*>&, char*, size_t);
struct Type {
  size_t bytes;
  Combine combine;
};
// In the order of ncclDataType_t.
const Type kTypes[] = {
    {1, combine<int8_t, int8_t>},   {1, combine<uint8_t, uint8_t>},
    {4, combine<int32_t, int32_t>}, {4, combine<uint32_t, uint32_t>},
    {8, combine<int64_t, int64_t>}, {8, combine<uint64_t, uint64_t>},
    {2, combine<Half, float>},      {4, combine<float, float>},
    {8, combine<double, double>},   {2, combine<BFloat16, float>},
};

// Faults that a test asks for: of the next call that a stream comes to.
std::atomic<bool> dies{false}, hangs{false};

// ---- Calls --------------------------------------------------------------------------------------

struct Comm {
  std::shared_ptr<State> state;
};

// A call in a group: messages of all of them go together, then come the others.
struct Waiting {
  std::shared_ptr<State> state;
  Stream* stream;
  std::vector<Piece> sends, takes;
  Task task;
};
thread_local int depth = 0;
thread_local std::vector<Waiting> group;

int begin_calls() {
  std::vector<Waiting> calls;
  calls.swap(group);
  std::map<State*, std::pair<Stream*, std::vector<Waiting>>> by_state;
  for (Waiting& each : calls) {
    auto& [stream, list] = by_state[each.state.get()];
    stream = each.stream;
    list.push_back(std::move(each));
  }
  for (auto& [state, streamed] : by_state) {
    if (state->result != kSuccess) return kInvalidUsage;
    auto list = std::make_shared<std::vector<Waiting>>(std::move(streamed.second));
    streamed.first->push([list] {
      State& one = *list->front().state;
      if (dies.exchange(false)) _exit(9);
      if (hangs.exchange(false))
        while (!one.aborted) pause();
      std::vector<Piece> sends, takes;
      for (const Waiting& each : *list) {
        sends.insert(sends.end(), each.sends.begin(), each.sends.end());
        takes.insert(takes.end(), each.takes.begin(), each.takes.end());
      }
      if (one.aborted || !one.exchange(1, sends, takes)) return;
      for (const Waiting& each : *list)
        if (each.task && !one.aborted) each.task();
    });
  }
  return kSuccess;
}

int queue(Comm* comm, void* stream, std::vector<Piece> sends, std::vector<Piece> takes, Task task) {
  if (comm == nullptr || comm->state->result != kSuccess) return kInvalidUsage;
  group.push_back({comm->state, &stream_of(reinterpret_cast<uint64_t>(stream)), std::move(sends),
                   std::move(takes), std::move(task)});
  return depth > 0 ? kSuccess : begin_calls();
}

// `mine(rank)` is what goes to a rank, none if it is null. Those that get something from all call
// `end` with it.
int gathered(Comm* comm, void* stream, uint64_t kind, size_t bytes,
             std::function<const char*(int)> mine, std::function<bool(int)> gives, bool takes,
             std::function<void(State&, const std::vector<const char*>&)> end) {
  if (comm == nullptr) return kInvalidUsage;
  const std::shared_ptr<State> state = comm->state;
  return queue(comm, stream, {}, {}, [=] {
    std::vector<Piece> out, in;
    std::vector<std::vector<char>> kept(static_cast<size_t>(state->size));
    std::vector<const char*> found(kept.size(), nullptr);
    for (int peer = 0; peer < state->size; ++peer) {
      const auto place = static_cast<size_t>(peer);
      const char* const given = gives(state->rank) ? mine(peer) : nullptr;
      if (given != nullptr) out.push_back({peer, const_cast<char*>(given), bytes});
      if (!takes || !gives(peer)) continue;
      kept[place].resize(bytes);
      found[place] = kept[place].data();
      in.push_back({peer, kept[place].data(), bytes});
    }
    if (state->exchange(kind, out, in) && takes) end(*state, found);
  });
}

uint64_t kind_of(int function, int type, int op, int root) {
  return static_cast<uint64_t>(function) << 32 | static_cast<uint64_t>(type) << 24 |
         static_cast<uint64_t>(op) << 8 | static_cast<uint64_t>(root);
}
bool everybody(int) { return true; }

}  // namespace

TREADLE_PLUGIN("cuda", "1.0", start)

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED void stand_in_die() { dies = true; }
EXPORTED void stand_in_hang() { hangs = true; }
// Writes a number in the default stream, after some time.
EXPORTED void stand_in_write(float* to, float value, int milliseconds) {
  stream_of(0).push([=] {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    *to = value;
  });
}

EXPORTED int ncclGetVersion(int* version) {
#ifdef OLD_RELEASE
  *version = 21003;
#else
  *version = 22809;
#endif
  return kSuccess;
}
EXPORTED const char* ncclGetErrorString(int result) {
  return result == kRemote ? "remote process exited" : "invalid usage";
}
EXPORTED int ncclGetUniqueId(Id* id) {
  *id = {};
  // Beside this library: those of processes that were killed go with it.
  Dl_info here{};
  dladdr(reinterpret_cast<void*>(&ncclGetVersion), &here);
  const std::string path = here.dli_fname;
  const std::string folder = path.substr(0, path.rfind('/')) + "/XXXXXX";
  std::strncpy(id->folder, folder.c_str(), sizeof id->folder - 1);
  return mkdtemp(id->folder) != nullptr ? kSuccess : kInvalidUsage;
}
#ifndef OLD_RELEASE
EXPORTED int ncclCommInitRankConfig(Comm** made, int size, Id id, int rank, Config* config) {
  if (config->magic != 0xcafebeef || config->version < 21400 || config->blocking != 0)
    return kInvalidUsage;
  auto state = std::make_shared<State>();
  state->rank = rank;
  state->size = size;
  state->folder = id.folder;
  state->joining = std::thread([one = state.get()] { one->join(); });
  *made = new Comm{std::move(state)};
  return kInProgress;
}
#endif
EXPORTED int ncclCommGetAsyncError(Comm* comm, int* result) {
  *result = comm->state->result;
  return kSuccess;
}
EXPORTED int ncclCommAbort(Comm* comm) {
  State& state = *comm->state;
  state.aborted = true;
  state.joining.join();
  unlink((state.folder + "/" + std::to_string(state.rank)).c_str());
  rmdir(state.folder.c_str());  // the last one can
  delete comm;
  return kSuccess;
}
EXPORTED int ncclGroupStart() { return ++depth, kSuccess; }
EXPORTED int ncclGroupEnd() { return --depth > 0 ? static_cast<int>(kSuccess) : begin_calls(); }

EXPORTED int ncclSend(const void* in, size_t count, int type, int peer, Comm* comm, void* stream) {
  char* const data = static_cast<char*>(const_cast<void*>(in));
  return queue(comm, stream, {{peer, data, count * kTypes[type].bytes}}, {}, nullptr);
}
EXPORTED int ncclRecv(void* out, size_t count, int type, int peer, Comm* comm, void* stream) {
  char* const data = static_cast<char*>(out);
  return queue(comm, stream, {}, {{peer, data, count * kTypes[type].bytes}}, nullptr);
}
EXPORTED int ncclAllReduce(const void* in, void* out, size_t count, int type, int op, Comm* comm,
                           void* stream) {
  const auto* const mine = static_cast<const char*>(in);
  return gathered(
      comm, stream, kind_of(2, type, op, 0), count * kTypes[type].bytes, [=](int) { return mine; },
      everybody, true,
      [=](State& state, const std::vector<const char*>& values) {
        kTypes[type].combine(state, op, values, static_cast<char*>(out), count);
      });
}
EXPORTED int ncclReduce(const void* in, void* out, size_t count, int type, int op, int root,
                        Comm* comm, void* stream) {
  const auto* const mine = static_cast<const char*>(in);
  return gathered(
      comm, stream, kind_of(3, type, op, root), count * kTypes[type].bytes,
      [=](int peer) { return peer == root ? mine : nullptr; }, everybody, comm->state->rank == root,
      [=](State& state, const std::vector<const char*>& values) {
        kTypes[type].combine(state, op, values, static_cast<char*>(out), count);
      });
}
EXPORTED int ncclReduceScatter(const void* in, void* out, size_t count, int type, int op,
                               Comm* comm, void* stream) {
  const size_t bytes = count * kTypes[type].bytes;
  const auto* const mine = static_cast<const char*>(in);
  return gathered(
      comm, stream, kind_of(4, type, op, 0), bytes,
      [=](int peer) { return mine + static_cast<size_t>(peer) * bytes; }, everybody, true,
      [=](State& state, const std::vector<const char*>& values) {
        kTypes[type].combine(state, op, values, static_cast<char*>(out), count);
      });
}
EXPORTED int ncclAllGather(const void* in, void* out, size_t count, int type, Comm* comm,
                           void* stream) {
  const size_t bytes = count * kTypes[type].bytes;
  const auto* const mine = static_cast<const char*>(in);
  return gathered(
      comm, stream, kind_of(5, type, 0, 0), bytes, [=](int) { return mine; }, everybody, true,
      [=](State&, const std::vector<const char*>& values) {
        for (size_t rank = 0; rank < values.size(); ++rank)
          std::memcpy(static_cast<char*>(out) + rank * bytes, values[rank], bytes);
      });
}
EXPORTED int ncclBroadcast(const void* in, void* out, size_t count, int type, int root, Comm* comm,
                           void* stream) {
  const size_t bytes = count * kTypes[type].bytes;
  const auto* const mine = static_cast<const char*>(in);
  return gathered(
      comm, stream, kind_of(6, type, 0, root), bytes, [=](int) { return mine; },
      [=](int rank) { return rank == root; }, true,
      [=](State&, const std::vector<const char*>& values) {
        std::memcpy(out, values[static_cast<size_t>(root)], bytes);
      });
}
EXPORTED int ncclRedOpCreatePreMulSum(int* made, void* factor, int type, int residence,
                                      Comm* comm) {
  if (residence != 1) return kInvalidUsage;
  double value = 0;
  const auto take = [&](auto number) {
    std::memcpy(&number, factor, sizeof number);
    value = static_cast<double>(number);
  };
  if (type == 6) take(Half());
  if (type == 7) take(0.0f);
  if (type == 8) take(0.0);
  if (type == 9) take(BFloat16());
  *made = kFirstMade + static_cast<int>(comm->state->factors.size());
  comm->state->factors[*made] = value;
  return kSuccess;
}
EXPORTED int ncclRedOpDestroy(int, Comm*) { return kSuccess; }
