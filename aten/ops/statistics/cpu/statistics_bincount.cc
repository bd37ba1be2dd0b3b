// bincount: the count of each integer, or the sum of its weights.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "aten/ops/bincount.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/statistics/histogram_bins.h"
#include "aten/ops/to.h"

namespace treadle::cpu {
namespace {

template <class W>
Tensor weighted(const int64_t* values, int64_t count, const Tensor& weights, int64_t bins) {
  std::vector<double> sums(static_cast<size_t>(bins), 0.0);
  const W* const weight = weights.data_as<W>();
  for (int64_t i = 0; i < count; ++i) sums[values[i]] += static_cast<double>(weight[i]);
  const Tensor out = empty_cpu({bins}, scalar_type_of<W>);
  std::copy(sums.begin(), sums.end(), out.data_as<W>());
  return out;
}

template <class T>
Tensor bincount_cpu(const Tensor& self, const Tensor& weights, int64_t minlength) {
  check_bincount(self, weights, minlength);
  // A copy, so that the checked values are those counted.
  const Tensor own = aten::contiguous(aten::to(self, ScalarType::Int64));
  const std::vector<int64_t> values(own.data_as<int64_t>(), own.data_as<int64_t>() + own.numel());
  int64_t bins = minlength;
  for (const int64_t value : values) bins = std::max(bins, bins_up_to(value));
  const int64_t count = own.numel();
  if (!weights.defined()) {
    const Tensor out = empty_cpu({bins}, ScalarType::Int64);
    int64_t* const counts = out.data_as<int64_t>();
    std::fill(counts, counts + bins, int64_t{0});
    for (const int64_t value : values) ++counts[value];
    return out;
  }
  if (weights.dtype() == ScalarType::Float32)
    return weighted<float>(values.data(), count, aten::contiguous(weights), bins);
  return weighted<double>(values.data(), count,
                          aten::contiguous(aten::to(weights, ScalarType::Float64)), bins);
}

const auto bincount_registered = register_kernels<aten::ops::bincount, DeviceType::CPU>(
    []<class T>() { return &bincount_cpu<T>; }, "bincount_cpu");

}  // namespace
}  // namespace treadle::cpu
