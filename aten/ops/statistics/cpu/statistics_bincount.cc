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
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

constexpr int64_t kGrain = 32768;  // elements of a piece
constexpr int64_t kSmall = 2048;   // bins, of which pieces may have their own

template <class W>
Tensor weighted(const int64_t* values, int64_t count, const Tensor& weights, int64_t bins) {
  std::vector<double> sums(static_cast<size_t>(bins), 0.0);
  const W* const weight = weights.data_as<W>();
  for (int64_t i = 0; i < count; ++i) sums[values[i]] += static_cast<double>(weight[i]);
  const Tensor out = empty_cpu({bins}, scalar_type_of<W>);
  std::copy(sums.begin(), sums.end(), out.data_as<W>());
  return out;
}

// Adds the count of each value. Several tables share the work: equal values one after the other
// would wait for one another in one.
void count_values(const int64_t* values, int64_t count, int64_t bins, int64_t* counts) {
  constexpr int64_t kTables = 4;
  const int64_t tables = bins <= kSmall ? kTables : 1;
  std::vector<int64_t> others(static_cast<size_t>((tables - 1) * bins), 0);
  int64_t* table[kTables];
  for (int64_t t = 0; t < kTables; ++t)
    table[t] = t == 0 || tables == 1 ? counts : others.data() + (t - 1) * bins;
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
    for (int64_t bin = 0; bin < bins; ++bin) counts[bin] += table[t][bin];
  }
}

// The count of each value: where there are few bins, pieces have their own.
Tensor counted(const int64_t* values, int64_t count, int64_t bins) {
  const Tensor out = empty_cpu({bins}, ScalarType::Int64);
  int64_t* const counts = out.data_as<int64_t>();
  std::fill_n(counts, bins, int64_t{0});
  const int64_t size = bins <= kSmall ? piece_length(count, std::max(kGrain, count / 16)) : count;
  const int64_t pieces = size > 0 ? (count + size - 1) / size : 0;
  if (pieces <= 1) {
    count_values(values, count, bins, counts);
    return out;
  }
  std::vector<int64_t> parts(static_cast<size_t>(pieces * bins), 0);
  parallel_chunks(pieces, [&](int64_t p) {
    count_values(values + p * size, std::min(size, count - p * size), bins,
                 parts.data() + p * bins);
  });
  for (int64_t p = 0; p < pieces; ++p) {
    for (int64_t bin = 0; bin < bins; ++bin) counts[bin] += parts[p * bins + bin];
  }
  return out;
}

// The least and the greatest value, 0 and -1 where these are beyond.
struct Bounds {
  int64_t least = 0, greatest = -1;
};
Bounds bounds_of(const int64_t* values, int64_t count) {
  const int64_t size = piece_length(count, kGrain), pieces = (count + size - 1) / size;
  std::vector<Bounds> parts(static_cast<size_t>(pieces));
  parallel_chunks(pieces, [&](int64_t p) {
    Bounds own;
    for (int64_t i = p * size; i < std::min(count, (p + 1) * size); ++i) {
      own.least = std::min(own.least, values[i]);
      own.greatest = std::max(own.greatest, values[i]);
    }
    parts[p] = own;
  });
  Bounds all;
  for (const Bounds& own : parts) {
    all.least = std::min(all.least, own.least);
    all.greatest = std::max(all.greatest, own.greatest);
  }
  return all;
}

template <class T>
Tensor bincount_cpu(const Tensor& self, const Tensor& weights, int64_t minlength) {
  check_bincount(self, weights, minlength);
  const Tensor integers = aten::contiguous(aten::to(self, ScalarType::Int64));
  const int64_t count = integers.numel();
  const int64_t* const values = integers.data_as<int64_t>();
  // The least and the greatest value stand for all: where they fit, every one does.
  const auto [least, greatest] = count > 0 ? bounds_of(values, count) : Bounds();
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
