// multinomial: indices drawn in proportion to weights, with the CPU's numbers.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/contiguous.h"
#include "aten/ops/copy_.h"
#include "aten/ops/multinomial.h"
#include "aten/ops/narrow.h"
#include "aten/ops/random/cuda/random_numbers.cuh"
#include "aten/ops/sort.h"

namespace treadle::cuda {
namespace {

__device__ const char kMultinomial[] = "multinomial";

// A block for each row. The sums of the weights are taken one after the other, as on the CPU, by
// the first thread, from memory that all threads fill. Without `sums` the weights are only checked.
template <class T>
__global__ void sum_weights(const T* weights, int64_t n, int64_t least, double* sums, int64_t* last,
                            FaultPlace fault) {
  __shared__ double part[4 * kBlock];
  const T* const own = weights + blockIdx.x * n;
  double total = 0;
  int64_t positive = 0, largest = 0;
  for (int64_t first = 0; first < n; first += 4 * kBlock) {
    const int count = static_cast<int>(n - first < 4 * kBlock ? n - first : 4 * kBlock);
    for (int i = threadIdx.x; i < count; i += kBlock) {
      const double w = static_cast<double>(widened(own[first + i]));
      if (!(w >= 0 && isfinite(w))) record_wrong_number(fault, kWeights, kMultinomial, w);
      part[i] = w;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int i = 0; i < count; ++i) {
        if (part[i] > 0) {
          ++positive;
          largest = first + i;
        }
        part[i] = total += part[i];
      }
    }
    __syncthreads();
    if (sums)
      for (int i = threadIdx.x; i < count; i += kBlock) sums[blockIdx.x * n + first + i] = part[i];
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  if (!(total > 0))
    record_wrong_number(fault, kPositiveSum, kMultinomial, total);
  else if (positive < least)
    record_fault(fault, kTooFewWeights, kMultinomial, least, 0, positive);
  last[blockIdx.x] = largest;
}

// With replacement: the sample's number falls into one of the intervals bounded by the sums.
__global__ void draw_with_replacement(RandomStart start, const double* sums, const int64_t* last,
                                      int64_t rows, int64_t n, int64_t samples, int64_t* out) {
  const GeneratorImpl::Position at = found(start);
  for_each_element(rows * samples, [=](int64_t i) {
    const int64_t row = i / samples;
    const double* const own = sums + row * n;
    const auto block = philox4x32(at.seed, at.offset + static_cast<uint64_t>(i), 0);
    const uint32_t words[2] = {block[0], block[1]};
    const double place = unit<double>(words, 0) * own[n - 1];
    int64_t first = 0, behind = n;  // the first sum above it
    while (first < behind) {
      const int64_t middle = (first + behind) / 2;
      if (own[middle] > place)
        behind = middle;
      else
        first = middle + 1;
    }
    out[i] = first < last[row] ? first : last[row];  // rounding may have reached the total
  });
}

// Without: the smallest of exponential numbers divided by the weights come in the order of drawing.
template <class T>
__global__ void exponential_keys(RandomStart start, const T* weights, int64_t count, double* keys) {
  const GeneratorImpl::Position at = found(start);
  for_each_element(count, [=](int64_t i) {
    const auto block = philox4x32(at.seed, at.offset + static_cast<uint64_t>(i), 0);
    const uint32_t words[2] = {block[0], block[1]};
    keys[i] = -log(open_unit<double>(words, 0)) / static_cast<double>(widened(weights[i]));
  });
}

template <class T>
void multinomial_cuda(const Tensor& self, int64_t num_samples, bool replacement,
                      const Generator& generator, const Tensor& out) {
  const Tensor input = aten::contiguous(self);
  const int64_t n = self.sizes().back(), rows = self.numel() / n;
  const int64_t per_row = replacement ? num_samples : n;
  int64_t blocks;
  check<ErrorKind::Runtime>(!__builtin_mul_overflow(rows, per_row, &blocks), OpName("multinomial"),
                            "expected fewer samples, got num_samples = ", num_samples);
  const auto start = reserve("multinomial", self, generator, blocks);
  if (rows == 0) return;
  check<ErrorKind::Runtime>(rows <= INT32_MAX, OpName("multinomial"),
                            "expected fewer than 2^31 rows on cuda, got ", rows);
  const Place place(self);
  const Tensor work = empty_tensor(self.sizes(), ScalarType::Float64, self.device());
  const Tensor last = empty_tensor({rows}, ScalarType::Int64, self.device());
  sum_weights<<<static_cast<unsigned>(rows), kBlock, 0, place.stream>>>(
      input.data_as<T>(), n, replacement ? 0 : num_samples,
      replacement ? work.data_as<double>() : nullptr, last.data_as<int64_t>(),
      faults().place(place.device));
  check_launched();
  if (out.numel() == 0) return;
  if (replacement) {
    draw_with_replacement<<<blocks_for(rows * num_samples), kBlock, 0, place.stream>>>(
        start, work.data_as<double>(), last.data_as<int64_t>(), rows, n, num_samples,
        out.data_as<int64_t>());
    check_launched();
    return;
  }
  exponential_keys<<<blocks_for(rows * n), kBlock, 0, place.stream>>>(
      start, input.data_as<T>(), rows * n, work.data_as<double>());
  check_launched();
  const auto [sorted, order] = aten::sort(work, true, -1, false);
  aten::copy_(out, aten::narrow(order, -1, 0, num_samples));
}

const auto multinomial_registered = register_cuda<aten::ops::multinomial>(
    Floats(), []<class T>() { return &multinomial_cuda<T>; }, "multinomial_cuda");

}  // namespace
}  // namespace treadle::cuda
