// The common part of the emulator's cuDNN: its handle, descriptions of tensors, numbers of any
// dtype as double.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cudnn.h>

#include <vector>

#include "core/base/half.h"
#include "tests/cuda_emulator/device.h"

namespace treadle::cuda::emulator {

using Sizes = std::vector<int>;
struct Handle {
  cudaStream_t stream = nullptr;
};
struct Dense {  // a tensor's description
  cudnnDataType_t type;
  Sizes sizes, strides;
};

template <class Own, class Opaque>
Own& own(Opaque* opaque) {
  return *reinterpret_cast<Own*>(opaque);
}

inline Sizes contiguous(const Sizes& sizes) {
  Sizes strides(sizes.size());
  int step = 1;
  for (size_t d = sizes.size(); d-- > 0; step *= sizes[d]) strides[d] = step;
  return strides;
}

template <class T>
double read(const void* data, int64_t at) {
  const T& v = static_cast<const T*>(data)[at];
  if constexpr (sizeof(T) == 2)
    return static_cast<double>(static_cast<float>(v));
  else
    return static_cast<double>(v);
}
template <class T>
void write(void* data, int64_t at, double v, double beta) {
  if (beta != 0) v += beta * read<T>(data, at);
  if constexpr (sizeof(T) == 2)
    static_cast<T*>(data)[at] = T(static_cast<float>(v));
  else
    static_cast<T*>(data)[at] = static_cast<T>(v);
}

// Calls f for a dtype that is known when a program runs.
template <class F>
auto with_type(cudnnDataType_t type, F f) {
  switch (type) {
    case CUDNN_DATA_DOUBLE:
      return f.template operator()<double>();
    case CUDNN_DATA_HALF:
      return f.template operator()<Half>();
    case CUDNN_DATA_BFLOAT16:
      return f.template operator()<BFloat16>();
    default:
      return f.template operator()<float>();
  }
}

}  // namespace treadle::cuda::emulator
