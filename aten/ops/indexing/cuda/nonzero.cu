// Results whose length the host must know: the coordinates of nonzero elements, and positions
// repeated by counts. Running counts give the offset of each write.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/backend/cuda/kernels/scan.cuh"
#include "aten/ops/contiguous.h"
#include "aten/ops/nonzero.h"
#include "aten/ops/repeat_interleave.h"

namespace treadle::cuda {
namespace {

template <class T>
__device__ inline bool is_nonzero(const T& value) {
  if constexpr (std::is_same_v<T, simd::Cplx<float>> || std::is_same_v<T, simd::Cplx<double>>)
    return value.re != 0 || value.im != 0;
  else
    return widened(value) != 0;
}

template <class T>
struct CountNonzero {
  using State = int64_t;
  const T* values;
  int64_t* counts;
  __device__ State load(int64_t, int64_t j) const { return is_nonzero(values[j]); }
  __device__ State join(State a, State b) const { return a + b; }
  __device__ void store(int64_t, int64_t j, State all) const { counts[j] = all; }
};

constexpr int kMaxDims = 16;
struct Sizes {
  int count;
  int64_t at[kMaxDims];
};
template <class T>
__global__ void nonzero_kernel(const T* values, const int64_t* counts, int64_t n, Sizes sizes,
                               int64_t* out) {
  for_each_element(n, [=](int64_t i) {
    if (!is_nonzero(values[i])) return;
    int64_t* const coordinates = out + (counts[i] - 1) * sizes.count;
    int64_t rest = i;
    // Written out, as in Axes.
#pragma unroll
    for (int d = kMaxDims - 1; d >= 0; --d) {
      if (d >= sizes.count) continue;
      const int64_t next = rest / sizes.at[d];
      coordinates[d] = rest - next * sizes.at[d];
      rest = next;
    }
  });
}

template <class T>
Tensor nonzero_cuda(const Tensor& self) {
  using S = Stored<T>;
  const Place place(self);
  const int64_t n = self.numel(), rank = self.dim();
  check<ErrorKind::Runtime>(rank <= kMaxDims, OpName("nonzero"), "expected at most ", kMaxDims,
                            " dimensions on cuda, got ", rank);
  if (n == 0) return empty_tensor({0, rank}, ScalarType::Int64, self.device());
  const Tensor input = aten::contiguous(self);
  const auto* const values = static_cast<const S*>(input.data());
  const Tensor counts = empty_tensor({n}, ScalarType::Int64, self.device());
  scan_lines(CountNonzero<S>{values, counts.data_as<int64_t>()}, 1, n, false, place);
  const Tensor out =
      empty_tensor({number_at<int64_t>(counts, n - 1), rank}, ScalarType::Int64, self.device());
  if (out.numel() == 0) return out;
  Sizes sizes{static_cast<int>(rank), {}};
  std::copy(input.sizes().begin(), input.sizes().end(), sizes.at);
  nonzero_kernel<<<blocks_for(n), kBlock, 0, place.stream>>>(values, counts.data_as<int64_t>(), n,
                                                             sizes, out.data_as<int64_t>());
  check_launched();
  return out;
}

// ---- repeat_interleave of counts ----

// The sum so far, the least of the counts, and whether the sum has not fitted: two sums that do fit
// wrap to a number below 0 where theirs does not.
template <class T>
struct SumCounts {
  struct State {
    int64_t sum, least_count;
    bool too_large;
  };
  const T* counts;
  State* sums;
  __device__ State load(int64_t, int64_t j) const {
    return {int64_t{counts[j]}, int64_t{counts[j]}, false};
  }
  __device__ State join(State a, State b) const {
    // Sums of counts that are not below 0; others are refused by the least of them.
    const auto sum =
        static_cast<int64_t>(static_cast<uint64_t>(a.sum) + static_cast<uint64_t>(b.sum));
    return {sum, a.least_count < b.least_count ? a.least_count : b.least_count,
            a.too_large || b.too_large || sum < 0};
  }
  __device__ void store(int64_t, int64_t j, State all) const { sums[j] = all; }
};

// out[k]: the first position at which the running count exceeds k.
template <class T>
__global__ void repeat_kernel(const typename SumCounts<T>::State* sums, int64_t length, T* out,
                              int64_t total) {
  for_each_element(total, [=](int64_t k) {
    int64_t low = 0, high = length - 1;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (sums[middle].sum > k)
        high = middle;
      else
        low = middle + 1;
    }
    out[k] = static_cast<T>(low);
  });
}

template <class T>
Tensor repeat_interleave_cuda(const Tensor& repeats, std::optional<int64_t> output_size) {
  using State = typename SumCounts<T>::State;
  check<ErrorKind::Runtime>(repeats.dim() == 1, OpName("repeat_interleave"),
                            "expected repeats with 1 dimension, got shape ", repeats.sizes());
  const Place place(repeats);
  const int64_t length = repeats.numel();
  State all{0, 0, false};
  Tensor memory;
  if (length > 0) {
    const Tensor counts = aten::contiguous(repeats);
    constexpr int64_t kStateBytes = sizeof(State);
    memory = empty_tensor({length * kStateBytes}, ScalarType::UInt8, repeats.device());
    auto* const sums = static_cast<State*>(memory.data());
    scan_lines(SumCounts<T>{counts.data_as<T>(), sums}, 1, length, false, place);
    move_bytes({&all, 0, kCPU},
               {memory.storage()->data(), memory.storage_offset() + (length - 1) * kStateBytes,
                memory.device()},
               sizeof all, false);
  }
  check<ErrorKind::Runtime>(all.least_count >= 0, OpName("repeat_interleave"),
                            "expected repeats >= 0, got ", all.least_count);
  check<ErrorKind::Runtime>(!all.too_large, OpName("repeat_interleave"),
                            "expected repeats whose sum fits in int64");
  check<ErrorKind::Runtime>(!output_size || *output_size == all.sum, OpName("repeat_interleave"),
                            "expected output_size ", all.sum,
                            ", the sum of repeats, got output_size = ", output_size);
  const Tensor out = empty_tensor({all.sum}, repeats.dtype(), repeats.device());
  if (all.sum == 0) return out;
  repeat_kernel<T><<<blocks_for(all.sum), kBlock, 0, place.stream>>>(
      static_cast<const State*>(memory.data()), length, out.data_as<T>(), all.sum);
  check_launched();
  return out;
}

const auto nonzero_registered = register_cuda<aten::ops::nonzero>(
    AllTypes(), []<class T>() { return &nonzero_cuda<T>; }, "nonzero_cuda");
const auto repeat_interleave_registered = register_cuda<aten::ops::repeat_interleave_Tensor>(
    TypeList<int32_t, int64_t>(), []<class T>() { return &repeat_interleave_cuda<T>; },
    "repeat_interleave_cuda");

}  // namespace
}  // namespace treadle::cuda
