// The wait for a spin lock.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/graph/spin_lock.h"

#include <thread>

namespace treadle::autograd {

void SpinLock::wait() noexcept {
  // Its owner may have been put to sleep.
  do {
    std::this_thread::yield();
  } while (taken_.exchange(true, std::memory_order_acquire));
}

}  // namespace treadle::autograd
