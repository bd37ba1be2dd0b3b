// Threads as contexts with stacks of their own. A context is entered by setcontext once, and from
// then on by longjmp, which asks nothing of the system; its check that it goes up the same stack is
// for other uses.
//
// SPDX-License-Identifier: Apache-2.0
#undef _FORTIFY_SOURCE
#include "tests/cuda_emulator/threads.h"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "tests/cuda_emulator/instructions.h"

namespace treadle::cuda::emulator {

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace {

constexpr size_t kStack = size_t{256} << 10;

// Thrown by a thread that ends within a call.
struct ThreadEnds {};

// Where live threads meet: all go on when the last has come, or the last other one has ended.
struct Meeting {
  unsigned live = 0, waiting = 0, held = 0;  // `held`: how often they have met

  void begin(unsigned count) { *this = {count, 0, 0}; }
  void come() {
    ++waiting;
    go_on();
  }
  void leave() {
    --live;
    go_on();
  }

 private:
  void go_on() {
    if (live == 0 || waiting < live) return;
    waiting = 0;
    ++held;
  }
};

// A context runs threads one after another, until one has to wait: from then on it is that one's.
struct Fiber {
  ucontext_t begin;
  jmp_buf at;
  bool begun = false;
  std::unique_ptr<char[]> stack{new char[kStack]};
  unsigned thread = 0;
  const Meeting* waits_for = nullptr;  // until it has been held more than `seen` times
  unsigned seen = 0;
  bool finished = false;

  bool can_go_on() const { return !finished && waits_for->held != seen; }
};

struct Warp {
  Given given[2][kWarp];  // by turns: a lane may already give the next
  unsigned turn[kWarp];
  Meeting meeting;
};

struct Block {
  const std::function<void()>* thread = nullptr;
  jmp_buf scheduler;
  std::vector<std::unique_ptr<Fiber>> fibers;  // kept from block to block
  std::vector<Warp> warps;
  std::vector<char> shared;
  Meeting meeting;
  Fiber* current = nullptr;
  std::exception_ptr failed;
  unsigned count = 0, begun = 0;
  bool backwards = false;
};
Block& block() {
  static auto* block = new Block;
  return *block;
}
Warp& own_warp() {
  Block& b = block();
  return b.warps[b.current->thread / kWarp];
}

// From the scheduler to a context, and back.
void enter(Fiber& f) {
  if (_setjmp(block().scheduler) != 0) return;
  if (std::exchange(f.begun, true)) _longjmp(f.at, 1);
  setcontext(&f.begin);
}
void leave(Fiber& f) {
  if (_setjmp(f.at) == 0) _longjmp(block().scheduler, 1);
}

void become(unsigned thread) {
  block().current->thread = thread;
  threadIdx = {thread % blockDim.x, thread / blockDim.x % blockDim.y,
               thread / (blockDim.x * blockDim.y)};
}

// The work of a context: threads that have not begun, while there are any.
void run_threads() {
  for (;;) {
    Block& b = block();
    Fiber* const self = b.current;
    while (b.begun < b.count && !b.failed) {
      const unsigned next = b.begun++;
      become(b.backwards ? b.count - 1 - next : next);
      try {
        (*b.thread)();
      } catch (const ThreadEnds&) {
      } catch (...) {
        b.failed = std::current_exception();
      }
      own_warp().meeting.leave();
      b.meeting.leave();
    }
    self->finished = true;
    leave(*self);
  }
}

Fiber& fiber(size_t i) {
  Block& b = block();
  if (i == b.fibers.size()) {
    auto made = std::make_unique<Fiber>();
    getcontext(&made->begin);
    made->begin.uc_stack.ss_sp = made->stack.get();
    made->begin.uc_stack.ss_size = kStack;
    made->begin.uc_link = nullptr;
    makecontext(&made->begin, run_threads, 0);
    b.fibers.push_back(std::move(made));
  }
  return *b.fibers[i];
}

void wait_at(Meeting& meeting) {
  Block& b = block();
  Fiber* const self = b.current;
  self->waits_for = &meeting;
  self->seen = meeting.held;
  meeting.come();
  if (!self->can_go_on()) leave(*self);
}

void run_block() {
  Block& b = block();
  b.begun = 0;
  b.failed = nullptr;
  b.meeting.begin(b.count);
  b.warps.resize((b.count + kWarp - 1) / kWarp);
  for (size_t w = 0; w < b.warps.size(); ++w) {
    Warp& warp = b.warps[w];
    warp.meeting.begin(std::min<unsigned>(kWarp, b.count - static_cast<unsigned>(w) * kWarp));
    std::fill(std::begin(warp.turn), std::end(warp.turn), 0);
  }
  const auto resume = [&](Fiber& f) {
    b.current = &f;
    enter(f);
    if (b.failed) {
      b.fibers.clear();  // some are in the middle of a thread
      std::rethrow_exception(b.failed);
    }
  };
  // Each context that comes to a wait is left there, and another one begins.
  size_t used = 0;
  while (b.begun < b.count) {
    Fiber& f = fiber(used++);
    f.finished = false;
    resume(f);
  }
  while (b.meeting.live > 0) {
    bool any = false;
    for (size_t i = 0; i < used; ++i) {
      Fiber& f = *b.fibers[b.backwards ? used - 1 - i : i];
      if (!f.can_go_on()) continue;
      any = true;
      b.current = &f;
      become(f.thread);
      resume(f);
    }
    if (any) continue;
    const unsigned waiting = b.meeting.waiting, live = b.meeting.live;
    b.fibers.clear();
    fail<ErrorKind::Internal>(
        "internal error, please report it: a kernel's threads wait for each other: ", waiting,
        " of ", live, " where the block meets");
  }
}

}  // namespace

void run_grid(dim3 blocks, dim3 threads, size_t shared, const std::function<void()>& thread) {
  static bool backwards = false;
  backwards = !backwards;
  Block& b = block();
  b.thread = &thread;
  b.count = threads.x * threads.y * threads.z;
  b.backwards = backwards;
  check<ErrorKind::Internal>(
      b.count > 0 && b.count <= 1024 && shared <= kMaxShared && blocks.x > 0 && blocks.y > 0 &&
          blocks.z > 0 && blocks.y < 65536 && blocks.z < 65536,
      "internal error, please report it: a launch of ", blocks.x, " x ", blocks.y, " x ", blocks.z,
      " blocks of ", b.count, " threads with ", shared, " bytes");
  b.shared.resize(kMaxShared);
  blockDim = threads;
  gridDim = blocks;
  for (unsigned z = 0; z < blocks.z; ++z) {
    for (unsigned y = 0; y < blocks.y; ++y) {
      for (unsigned x = 0; x < blocks.x; ++x) {
        blockIdx = {x, y, z};
        std::memset(b.shared.data(), kFresh, shared);
        run_block();
      }
    }
  }
}

void* shared_memory() { return block().shared.data(); }

void meet_block() { wait_at(block().meeting); }
void meet_warp() { wait_at(own_warp().meeting); }
int lane() { return static_cast<int>(block().current->thread % kWarp); }

const Given* give(const void* mine, size_t size) {
  Warp& warp = own_warp();
  const auto own = static_cast<size_t>(lane());
  Given* const given = warp.given[warp.turn[own]++ % 2];
  std::memcpy(given[own].bytes, mine, size);
  meet_warp();
  return given;
}

void leave_thread() { throw ThreadEnds(); }

}  // namespace treadle::cuda::emulator
