// bincount: the count of each integer, or the sum of its weights.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "aten/backend/cpu/read_once.h"
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

// The count of each value. Several tables share the work: equal values one after the other would
// wait for one another in one.
Tensor counted(const int64_t* values, int64_t count, int64_t bins) {
  constexpr int64_t kTables = 4, kSmall = 2048;
  const int64_t tables = bins <= kSmall ? kTables : 1;
  const Tensor out = empty_cpu({bins}, ScalarType::Int64);
  std::vector<int64_t> others(static_cast<size_t>((tables - 1) * bins), 0);
  int64_t* table[kTables];
  for (int64_t t = 0; t < kTables; ++t)
    table[t] = t == 0 || tables == 1 ? out.data_as<int64_t>() : others.data() + (t - 1) * bins;
  std::fill_n(table[0], bins, int64_t{0});
  // The values were checked; another thread may have changed them since.
  const auto add = [bins](int64_t* to, int64_t value) {
    check<ErrorKind::Runtime>(static_cast<uint64_t>(value) < static_cast<uint64_t>(bins),
                              OpName("bincount"),
                              "expected self not to change while it is read, got a new ", value);
    ++to[value];
  };
  int64_t i = 0;
  for (; i + kTables <= count; i += kTables) {
    for (int64_t t = 0; t < kTables; ++t) add(table[t], read_once(values + i + t));
  }
  for (; i < count; ++i) add(table[0], read_once(values + i));
  for (int64_t t = 1; t < tables; ++t) {
    for (int64_t bin = 0; bin < bins; ++bin) table[0][bin] += table[t][bin];
  }
  return out;
}

template <class T>
Tensor bincount_cpu(const Tensor& self, const Tensor& weights, int64_t minlength) {
  check_bincount(self, weights, minlength);
  const Tensor integers = aten::contiguous(aten::to(self, ScalarType::Int64));
  const int64_t count = integers.numel();
  const int64_t* const values = integers.data_as<int64_t>();
  // The least and the greatest value stand for all: where they fit, every one does.
  int64_t least = 0, greatest = -1;
  for (int64_t i = 0; i < count; ++i) {
    least = std::min(least, values[i]);
    greatest = std::max(greatest, values[i]);
  }
  if (least < 0) bins_up_to(least);
  const int64_t bins = greatest < 0 ? minlength : std::max(minlength, bins_up_to(greatest));
  if (!weights.defined()) return counted(values, count, bins);
  // A copy, so that the checked values are those counted.
  const std::vector<int64_t> own(values, values + count);
  for (const int64_t value : own)
    check<ErrorKind::Runtime>(value >= 0 && value < bins, OpName("bincount"),
                              "expected self not to change while it is read, got a new ", value);
  if (weights.dtype() == ScalarType::Float32)
    return weighted<float>(own.data(), count, aten::contiguous(weights), bins);
  return weighted<double>(own.data(), count,
                          aten::contiguous(aten::to(weights, ScalarType::Float64)), bins);
}

const auto bincount_registered = register_kernels<aten::ops::bincount, DeviceType::CPU>(
    []<class T>() { return &bincount_cpu<T>; }, "bincount_cpu");

}  // namespace
}  // namespace treadle::cpu
