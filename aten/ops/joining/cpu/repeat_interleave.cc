// repeat_interleave of counts: the positions 0, 1, 2, ..., each repeated by its count.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/repeat_interleave.h"
#include "aten/backend/cpu/dim_slices.h"
#include "aten/backend/cpu/read_once.h"
#include "aten/ops/contiguous.h"

namespace treadle::cpu {
namespace {

template <class T>
Tensor repeat_interleave_cpu(const Tensor& repeats, std::optional<int64_t> output_size) {
  check<ErrorKind::Runtime>(repeats.dim() == 1, OpName("repeat_interleave"),
                            "expected repeats with 1 dimension, got shape ", repeats.sizes());
  const Tensor counts = aten::contiguous(repeats);
  const T* const count = counts.data_as<T>();
  const int64_t length = counts.numel();
  std::vector<int64_t> starts(length + 1, 0);
  for (int64_t i = 0; i < length; ++i) {
    const T times = read_once(count + i);
    check<ErrorKind::Runtime>(times >= 0, OpName("repeat_interleave"),
                              "expected repeats >= 0, got ", times);
    check<ErrorKind::Runtime>(
        !__builtin_add_overflow(starts[i], static_cast<int64_t>(times), &starts[i + 1]),
        OpName("repeat_interleave"), "expected repeats whose sum fits in int64");
  }
  const int64_t total = starts[length];
  check<ErrorKind::Runtime>(!output_size || *output_size == total, OpName("repeat_interleave"),
                            "expected output_size ", total,
                            ", the sum of repeats, got output_size = ", output_size);
  const Tensor out = empty_cpu({total}, repeats.dtype());
  T* const to = out.data_as<T>();
  parallel_for(length, grain_for(length ? total / length : 1), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::fill(to + starts[i], to + starts[i + 1], static_cast<T>(i));
  });
  return out;
}

const auto repeat_interleave_registered =
    register_kernels<aten::ops::repeat_interleave_Tensor, DeviceType::CPU>(
        []<class T>() { return &repeat_interleave_cpu<T>; }, "repeat_interleave_cpu");

}  // namespace
}  // namespace treadle::cpu
