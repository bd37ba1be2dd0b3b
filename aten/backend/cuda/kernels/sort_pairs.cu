// The only caller of CUB's sort: wide keys with 32-bit positions. Only the bits of the keys in use
// are compared.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/sort_pairs.h"

#include <cub/device/device_radix_sort.cuh>

#include "aten/backend/cuda/calls.h"
#include "core/base/error.h"

namespace treadle::cuda {

SortedPairs::SortedPairs(std::string_view op, int64_t n, Device device, cudaStream_t stream)
    : n_(n), stream_(stream) {
  check<ErrorKind::Runtime>(n <= int64_t{UINT32_MAX}, OpName(op),
                            "expected fewer than 2^32 elements to sort on cuda, got ", n);
  // Keys first, as they are the wider ones.
  memory_ = empty_tensor({3 * n}, ScalarType::Int64, device);
  keys_ = memory_.data_as<uint64_t>();
  other_keys_ = keys_ + n;
  positions_ = reinterpret_cast<uint32_t*>(keys_ + 2 * n);
  other_positions_ = positions_ + n;
}

void SortedPairs::sort(int bits) {
  if (n_ == 0 || bits == 0) return;
  cub::DoubleBuffer<uint64_t> keys(keys_, other_keys_);
  cub::DoubleBuffer<uint32_t> positions(positions_, other_positions_);
  size_t bytes = 0;
  const auto run = [&](void* scratch) {
    succeed(cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, positions,
                                            static_cast<uint32_t>(n_), 0, bits, stream_),
            "sorting");
  };
  run(nullptr);
  const Tensor scratch =
      empty_tensor({static_cast<int64_t>(bytes)}, ScalarType::UInt8, memory_.device());
  run(scratch.data());
  keys_ = keys.Current();
  other_keys_ = keys.Alternate();
  positions_ = positions.Current();
  other_positions_ = positions.Alternate();
}

}  // namespace treadle::cuda
