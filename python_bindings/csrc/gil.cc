// Taking the interpreter lock when the program may be over: Note [At the end of the program].
#include <cxxabi.h>
#include <pthread.h>
#include <unistd.h>

#include "python_bindings/csrc/gil.h"

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

int blocks = 0;
thread_local int own_blocks = 0;

// The other threads and their blocks are not in a forked child.
[[maybe_unused]] const int registered =
    pthread_atfork(nullptr, nullptr, [] { blocks = own_blocks; });

}  // namespace

ReleaseGil::ReleaseGil() {
  ++blocks;
  ++own_blocks;
  state_ = PyEval_SaveThread();
}
ReleaseGil::~ReleaseGil() {
  take_lock([&] { PyEval_RestoreThread(state_); });
  --blocks;
  --own_blocks;
}
int ReleaseGil::count() { return blocks; }

AcquireGil::AcquireGil() noexcept {
  take_lock([&] { state_ = PyGILState_Ensure(); });
}

}  // namespace treadle::python
