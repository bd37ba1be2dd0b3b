// Takes the interpreter lock when the program may be over: Note [At the end of the program]. Note
// [Operators that come to rest] A kernel reads shapes and memory without a lock, so a change of
// either by another thread would crash it. Short calls keep the interpreter lock. The others are
// blocks of ReleaseGil, which are counted. The thread that makes such a change takes the lock,
// waits until no block of another thread runs, and makes the change before any thread can begin a
// block. A block that has called Python (a hook, a custom function) does not count meanwhile,
// because between its operators it holds tensors, not addresses.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/gil.h"

#include <cxxabi.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "core/threads/quiescence.h"

namespace treadle::python {

void stay() {
  for (;;) pause();
}

namespace {

// Newer interpreters let the thread stay by themselves; older ones unwind it, which ends here.
template <class F>
void take_lock(F&& take) noexcept {
  try {
    take();
  } catch (const abi::__forced_unwind&) {
    stay();
  }
}

// All of these change only under the interpreter lock.
int blocks = 0;
thread_local constinit int own_blocks __attribute__((tls_model("initial-exec"))) = 0;
// Blocks that are inside an operator: all but those that wait in a Rest.
int running = 0;
thread_local constinit int own_running __attribute__((tls_model("initial-exec"))) = 0;
// Threads that wait for a Quiescence. No thread begins a block before they had it.
int waiting = 0;

// The other threads and their blocks are not in a forked child.
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] {
  blocks = own_blocks;
  running = own_running;
  waiting = 0;
});

constexpr auto kPatience = std::chrono::minutes(1);

// Lets other threads run until `done`, which is called under the interpreter lock. False if that
// takes too long.
template <class F>
bool wait_until(F&& done) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (auto pause = std::chrono::microseconds(20); !done();
       pause = std::min<std::chrono::microseconds>(pause * 2, std::chrono::milliseconds(1))) {
    if (std::chrono::steady_clock::now() > end) return false;
    PyThreadState* const state = PyEval_SaveThread();
    std::this_thread::sleep_for(pause);
    take_lock([&] { PyEval_RestoreThread(state); });
  }
  return true;
}

thread_local std::vector<PyGILState_STATE> quiet;  // of the Quiescences of this thread

bool begin_quiescence() {
  PyGILState_STATE state;
  take_lock([&] { state = PyGILState_Ensure(); });
  bool done;
  {
    // Two threads may wait at once without blocking each other.
    const Rest rest;
    ++waiting;
    done = wait_until([] { return running == 0; });
    --waiting;
  }
  if (done)
    quiet.push_back(state);
  else
    PyGILState_Release(state);
  return done;
}
// Between two operators of a block.
void give_way() {
  if (own_running == 0) return;
  const AcquireGil gil;
  const Rest rest;
  wait_until([] { return waiting == 0; });
}
void end_quiescence() {
  const PyGILState_STATE state = quiet.back();
  quiet.pop_back();
  PyGILState_Release(state);
}

}  // namespace

ReleaseGil::ReleaseGil() {
  // A thread that is in the middle of an operator is waited for itself.
  if (waiting > 0 && own_running == 0) [[unlikely]]
    wait_until([] { return waiting == 0; });
  ++blocks;
  ++own_blocks;
  ++running;
  ++own_running;
  state_ = PyEval_SaveThread();
}
ReleaseGil::~ReleaseGil() {
  take_lock([&] { PyEval_RestoreThread(state_); });
  --blocks;
  --own_blocks;
  --running;
  --own_running;
}
int ReleaseGil::count() { return blocks; }

Rest::Rest() : resting_(own_running) {
  running -= resting_;
  own_running = 0;
}
Rest::~Rest() {
  running += resting_;
  own_running = resting_;
}

void init_quiescence() {
  static constexpr Quiescence::Threads kThreads = {&begin_quiescence, &end_quiescence, &give_way};
  Quiescence::set_threads(&kThreads);
}

AcquireGil::AcquireGil() noexcept {
  take_lock([&] { state_ = PyGILState_Ensure(); });
}

}  // namespace treadle::python
