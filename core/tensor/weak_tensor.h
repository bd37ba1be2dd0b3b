// WeakTensor: a reference to a tensor that does not keep it alive, usable from any thread.
//
//   const auto weak = std::make_shared<WeakTensor>(t.impl());
//   if (const Tensor alive = weak->lock(); alive.defined()) ...
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include "core/base/fork_safe_mutex.h"
#include "core/tensor/tensor.h"

namespace treadle {

class WeakTensor {
 public:
  explicit WeakTensor(TensorImpl* tensor) : tensor_(tensor) {}

  // Undefined if the tensor is gone.
  Tensor lock() {
    const std::lock_guard guard(mutex_);
    if (tensor_ == nullptr || !tensor_->try_retain()) return Tensor();
    return Tensor(IntrusivePtr<TensorImpl>::adopt(tensor_));
  }
  // Called by the tensor's last owner. False if lock() was faster.
  bool forget() {
    const std::lock_guard guard(mutex_);
    if (tensor_ != nullptr && tensor_->use_count() > 1) return false;
    tensor_ = nullptr;
    return true;
  }

 private:
  ForkSafeMutex mutex_;
  TensorImpl* tensor_;
};

}  // namespace treadle
