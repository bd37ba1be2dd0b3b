// Device: a kind of device and an index, -1 for the current one.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/numbers.h>

HIDDEN_NAMESPACE_BEGIN(torch, stable)

using accelerator::DeviceIndex;
using torch::headeronly::DeviceType;

class Device {
 public:
  Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {
    STD_TORCH_CHECK(index >= -1, "expected a device's index >= -1, got ", index);
  }
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_10_0
  // "cuda:1"
  Device(const std::string& text) : type_(DeviceType::CPU) {
    uint32_t type = 0;
    STABLE_TORCH_ERROR_CODE_CHECK(torch_parse_device_string(text.c_str(), &type, &index_));
    type_ = detail::device_type_of(static_cast<int32_t>(type));
  }
#endif
  DeviceType type() const noexcept { return type_; }
  DeviceIndex index() const noexcept { return index_; }
  void set_index(DeviceIndex index) { index_ = index; }
  bool has_index() const noexcept { return index_ != -1; }
  bool is_cuda() const noexcept { return type_ == DeviceType::CUDA; }
  bool is_cpu() const noexcept { return type_ == DeviceType::CPU; }
  bool operator==(const Device& other) const noexcept {
    return type_ == other.type_ && index_ == other.index_;
  }
  bool operator!=(const Device& other) const noexcept { return !(*this == other); }

 private:
  DeviceType type_;
  DeviceIndex index_ = -1;
};

HIDDEN_NAMESPACE_END(torch, stable)
