// DeviceType: the kinds of devices by PyTorch's names.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace c10 {

enum class DeviceType : int8_t {
  CPU = 0,
  CUDA = 1,
  XPU = 12,
  MPS = 13,
  Meta = 14,
  PrivateUse1 = 20,  // that of a backend from outside
};

constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA, kXPU = DeviceType::XPU,
                     kMPS = DeviceType::MPS, kMeta = DeviceType::Meta,
                     kPrivateUse1 = DeviceType::PrivateUse1;

}  // namespace c10

namespace torch::headeronly {
using c10::DeviceType;
using c10::kCPU;
using c10::kCUDA;
using c10::kMeta;
using c10::kMPS;
using c10::kPrivateUse1;
using c10::kXPU;
}  // namespace torch::headeronly
