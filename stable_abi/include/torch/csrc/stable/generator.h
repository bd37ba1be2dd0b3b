// Generator: a source of random numbers, shared by the copies of this object.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <torch/csrc/stable/device.h>

#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_13_0

HIDDEN_NAMESPACE_BEGIN(torch, stable)

class Generator {
 public:
  // Takes over the handle.
  explicit Generator(AtenGeneratorHandle handle)
      : handle_(handle, [](AtenGeneratorHandle h) { torch_delete_generator(h); }) {}
  AtenGeneratorHandle get() const { return handle_.get(); }
  Device device() const {
    int32_t type = 0, index = 0;
    STABLE_TORCH_ERROR_CODE_CHECK(torch_generator_get_device(get(), &type, &index));
    return {detail::device_type_of(type), index};
  }

 private:
  std::shared_ptr<AtenGeneratorOpaque> handle_;
};

HIDDEN_NAMESPACE_END(torch, stable)

#endif
