// SPDX-License-Identifier: Apache-2.0
#include "aten/fusion/lock.h"

#include "core/base/fork_safe_mutex.h"

namespace treadle::fusion {
namespace {

thread_local bool is_held = false;

// Never destroyed: threads may outlive the objects of this file.
ForkSafeMutex& mutex() {
  static ForkSafeMutex& all = *new ForkSafeMutex;
  return all;
}

}  // namespace

Lock::Lock() : outermost_(!is_held) {
  if (outermost_) mutex().lock();
  is_held = true;
}

Lock::~Lock() {
  if (!outermost_) return;
  is_held = false;
  mutex().unlock();
}

}  // namespace treadle::fusion
