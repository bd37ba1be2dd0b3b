// repeat_interleave of counts: the positions 0, 1, 2, ..., each repeated by its count.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/repeat_interleave.h"
#include "aten/backend/cpu/read_once.h"
#include "aten/ops/contiguous.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

void check_sum(int64_t& sum, int64_t more) {
  check<ErrorKind::Runtime>(!__builtin_add_overflow(sum, more, &sum), OpName("repeat_interleave"),
                            "expected repeats whose sum fits in int64");
}

template <class T>
Tensor repeat_interleave_cpu(const Tensor& repeats, std::optional<int64_t> output_size) {
  check<ErrorKind::Runtime>(repeats.dim() == 1, OpName("repeat_interleave"),
                            "expected repeats with 1 dimension, got shape ", repeats.sizes());
  const Tensor counts = aten::contiguous(repeats);
  const T* const count = counts.data_as<T>();
  const int64_t length = counts.numel(), grain = 8192;
  // The sums of pieces say where each piece of the result begins.
  const int64_t size = std::max<int64_t>(1, piece_length(length, grain));
  const int64_t pieces = (length + size - 1) / size;
  std::vector<int64_t> ends(pieces + 1, 0);
  parallel_chunks(pieces, [&](int64_t p) {
    int64_t sum = 0;
    for (int64_t i = p * size; i < std::min(length, (p + 1) * size); ++i) {
      const T times = read_once(count + i);
      check<ErrorKind::Runtime>(times >= 0, OpName("repeat_interleave"),
                                "expected repeats >= 0, got ", times);
      check_sum(sum, static_cast<int64_t>(times));
    }
    ends[p + 1] = sum;
  });
  for (int64_t p = 0; p < pieces; ++p) check_sum(ends[p + 1], ends[p]);
  const int64_t total = ends[pieces];
  check<ErrorKind::Runtime>(!output_size || *output_size == total, OpName("repeat_interleave"),
                            "expected output_size ", total,
                            ", the sum of repeats, got output_size = ", output_size);
  const Tensor out = empty_cpu({total}, repeats.dtype());
  T* const to = out.data_as<T>();
  parallel_chunks(pieces, [&](int64_t p) {
    int64_t at = ends[p];
    for (int64_t i = p * size; i < std::min(length, (p + 1) * size); ++i) {
      const T times = read_once(count + i);
      // The counts were checked; another thread may have changed them since.
      check<ErrorKind::Runtime>(
          times >= 0 && times <= ends[p + 1] - at, OpName("repeat_interleave"),
          "expected repeats not to change while it is read, got a new ", times);
      for (const int64_t end = at + times; at < end; ++at) to[at] = static_cast<T>(i);
    }
    check<ErrorKind::Runtime>(at == ends[p + 1], OpName("repeat_interleave"),
                              "expected repeats not to change while it is read, got a smaller sum");
  });
  return out;
}

const auto repeat_interleave_registered =
    register_kernels<aten::ops::repeat_interleave_Tensor, DeviceType::CPU>(
        []<class T>() { return &repeat_interleave_cpu<T>; }, "repeat_interleave_cpu");

}  // namespace
}  // namespace treadle::cpu
