// Measures the rest of the stack by the address of a local variable.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/graph/nesting.h"

#include <pthread.h>

#include <cstdint>

#include "core/base/error.h"

namespace treadle::autograd {
namespace {

// Enough for the hook, the interpreter's frames below it and the kernels of a node. This part of a
// stack, which may be as small as 8 MiB, is kept free.
constexpr uintptr_t kReserve = uintptr_t{1} << 20;

// The lowest address of this thread's stack; 0 if the system does not report it.
uintptr_t end_of_stack() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* lowest = nullptr;
  size_t size = 0;
  if (pthread_attr_getstack(&attributes, &lowest, &size) != 0) lowest = nullptr;
  pthread_attr_destroy(&attributes);
  return reinterpret_cast<uintptr_t>(lowest);
}

}  // namespace

void require_stack() {
  thread_local const uintptr_t end = end_of_stack();
  const char here = 0;
  const auto at = reinterpret_cast<uintptr_t>(&here);
  check<ErrorKind::Runtime>(end == 0 || at - end > kReserve, OpName("backward"),
                            "expected room for one more backward pass inside those that "
                            "run on this thread, got less than 1 MiB of stack: a hook, or the "
                            "backward of a function, goes backward again and again");
}

}  // namespace treadle::autograd
