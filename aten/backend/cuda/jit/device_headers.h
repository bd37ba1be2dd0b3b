// The texts of the headers that generated kernels include, as a table that the build makes
// (embed_headers.sh). They are the headers of the CPU's kernels that suit any processor, and
// aten/backend/cuda/device/.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace treadle::cuda {

struct DeviceHeader {
  const char* name;  // as in #include
  const char* text;
};
extern const DeviceHeader kDeviceHeaders[];
extern const size_t kDeviceHeaderCount;

}  // namespace treadle::cuda
