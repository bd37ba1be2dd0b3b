// embedding_bag: the sum, mean or maximum of rows of a table, bag by bag, without a copy of the
// rows. Offsets and indices are checked before the first write.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "aten/backend/cpu/dim_slices.h"
#include "aten/backend/cpu/long_sums.h"
#include "aten/ops/_embedding_bag.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/indexing/cpu/entry_bounds.h"
#include "aten/ops/indexing/cpu/row_sums.h"
#include "core/base/error.h"

namespace treadle::cpu {
namespace {

enum Mode : int64_t { kSum = 0, kMean = 1, kMax = 2 };

// The start of each bag and the end of the last. The last bag ends with the indices, whatever the
// offsets say.
std::vector<int64_t> checked_bounds(const Tensor& offsets, int64_t bags, int64_t count) {
  const int64_t* p = offsets.data_as<int64_t>();
  std::vector<int64_t> bounds(p, p + offsets.numel());
  if (static_cast<int64_t>(bounds.size()) == bags) bounds.push_back(count);
  if (bounds.size() == 1) return bounds;
  check<ErrorKind::Runtime>(bounds[0] == 0, OpName("embedding_bag"),
                            "expected offsets that begin with 0, got ", bounds[0]);
  for (size_t b = 1; b < bounds.size(); ++b) {
    check<ErrorKind::Runtime>(bounds[b] >= bounds[b - 1] && bounds[b] <= count,
                              OpName("embedding_bag"),
                              "expected offsets that do not fall and stay within ", count,
                              " indices, got ", bounds[b], " after ", bounds[b - 1]);
  }
  bounds.back() = count;
  return bounds;
}

// The sums of rows of the table. The rows are added in runs, as in ColumnSums.
template <class T>
class BagSums {
 public:
  explicit BagSums(const simd::RowTable<T>& table) : table_(table) {}

  // The sum of the rows, times their factors if there are some, by `divisor`.
  void sum(const int64_t* rows, const T* factors, int64_t count, int64_t known, int64_t divisor,
           T* out) {
    if (count > kSumRun) {
      total_.assign(static_cast<size_t>(table_.width), 0);
      for (int64_t k = 0; k < count; k += kSumRun)
        sum_rows_(table_, rows + k, factors ? factors + k : nullptr, std::min(kSumRun, count - k),
                  known - k, nullptr, total_.data());
      const auto by = static_cast<double>(divisor);
      for (int64_t k = 0; k < table_.width; ++k) out[k] = static_cast<T>(total_[k] / by);
    } else {
      sum_rows_(table_, rows, factors, count, known, out, nullptr);
      const T by = static_cast<T>(divisor);
      if (divisor != 1) std::for_each(out, out + table_.width, [by](T& sum) { sum /= by; });
    }
  }

 private:
  simd::RowTable<T> table_;
  simd::SumRows<T> sum_rows_ = simd::sum_rows<T>();
  std::vector<double> total_;
};

// The same for rows whose elements are not side by side or are no numbers of the processor.
template <class T>
class StridedBagSums {
  using C = compute_type<T>;

 public:
  StridedBagSums(const simd::RowTable<T>& table, int64_t stride)
      : table_(table), stride_(stride), sums_(table.width) {}

  void sum(const int64_t* rows, const T* factors, int64_t count, int64_t /*known*/, int64_t divisor,
           T* out) {
    for (int64_t i = 0; i < count; ++i) {
      const T* const row = table_.table + rows[i] * table_.stride;
      sums_.add_row([&](C* sum) {
        for (int64_t k = 0; k < table_.width; ++k) {
          const C value = static_cast<C>(row[k * stride_]);
          sum[k] += factors ? value * static_cast<C>(factors[i]) : value;
        }
      });
    }
    sums_.take([&](int64_t k, wide_type<C> sum) {
      out[k] = static_cast<T>(static_cast<C>(sum / static_cast<wide_type<C>>(divisor)));
    });
  }

 private:
  simd::RowTable<T> table_;
  int64_t stride_;
  ColumnSums<C> sums_;
};

// The rows of a bag that are not padding, with their factors if there are some. Behind them, up to
// rows[known - 1], are those of later bags.
template <class T>
struct BagRows {
  const int64_t* rows;
  const T* factors;
  int64_t count, known;
};

// The bags, with the number of the bag and of the rows that are in it.
template <class T>
struct Bags {
  const std::vector<int64_t>& indices;
  const std::vector<int64_t>& bounds;
  const T* factors;
  int64_t padding_idx;
  int64_t *bag_of, *bag_size;

  BagRows<T> rows_of(int64_t bag, std::vector<int64_t>& rows, std::vector<T>& chosen) const {
    const int64_t first = bounds[bag], count = bounds[bag + 1] - first;
    std::fill_n(bag_of + first, count, bag);
    BagRows<T> found{indices.data() + first, factors ? factors + first : nullptr, count,
                     static_cast<int64_t>(indices.size()) - first};
    if (padding_idx >= 0) leave_out_padding(found, rows, chosen);
    bag_size[bag] = found.count;
    return found;
  }

 private:
  void leave_out_padding(BagRows<T>& found, std::vector<int64_t>& rows,
                         std::vector<T>& chosen) const {
    rows.clear();
    chosen.clear();
    for (int64_t i = 0; i < found.count; ++i) {
      if (found.rows[i] == padding_idx) continue;
      rows.push_back(found.rows[i]);
      if (factors) chosen.push_back(found.factors[i]);
    }
    const auto count = static_cast<int64_t>(rows.size());
    found = {rows.data(), factors ? chosen.data() : nullptr, count, count};
  }
};

// The largest element of each column of the rows, and the row that it is in. NaN is larger than all
// numbers, and the last NaN counts.
template <class T>
void largest_of(const simd::RowTable<T>& table, int64_t stride, const BagRows<T>& bag, T* out,
                int64_t* from) {
  using C = compute_type<T>;
  const int64_t width = table.width;
  if (bag.count == 0) {
    std::fill_n(out, width, T(0));
    std::fill_n(from, width, int64_t{-1});
    return;
  }
  const T* const first = table.table + bag.rows[0] * table.stride;
  for (int64_t k = 0; k < width; ++k) out[k] = first[k * stride];
  std::fill_n(from, width, bag.rows[0]);
  for (int64_t i = 1; i < bag.count; ++i) {
    const int64_t number = bag.rows[i];
    const T* const row = table.table + number * table.stride;
    // Without a branch, as the larger one cannot be predicted.
    for (int64_t k = 0; k < width; ++k) {
      const C value = static_cast<C>(row[k * stride]), most = static_cast<C>(out[k]);
      const bool larger = (value > most) | (value != value);
      out[k] = larger ? row[k * stride] : out[k];
      from[k] = larger ? number : from[k];
    }
  }
}

template <class T>
void embedding_bag_cpu(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                       bool /*scale_grad_by_freq*/, int64_t mode, bool /*sparse*/,
                       const Tensor& per_sample_weights, bool /*include_last_offset*/,
                       int64_t padding_idx, const Tensor& out, const Tensor& bag_of,
                       const Tensor& bag_size, const Tensor& max_indices) {
  const Tensor index = aten::contiguous(indices), starts = aten::contiguous(offsets);
  const Tensor factors =
      per_sample_weights.defined() ? aten::contiguous(per_sample_weights) : Tensor();
  const int64_t bag_count = out.size(0), width = out.size(1), rows = weight.size(0);
  const int64_t count = index.numel();
  const std::vector<int64_t> named(index.data_as<int64_t>(), index.data_as<int64_t>() + count);
  for (int64_t k = all_inside(named.data(), count, rows, 0) ? count : 0; k < count; ++k) {
    const int64_t i = named[k];
    check<ErrorKind::Runtime>(i >= 0 && i < rows, OpName("embedding_bag"), "expected index in [0, ",
                              rows, "), got index = ", i);
  }
  const std::vector<int64_t> bounds = checked_bounds(starts, bag_count, count);
  const int64_t row_stride = weight.stride(0), stride = weight.stride(1);
  const T* const table = weight.data_as<T>();
  const T* const factor = factors.defined() ? factors.data_as<T>() : nullptr;
  if (bag_count == 0) std::fill_n(bag_of.data_as<int64_t>(), count, int64_t{0});
  const Bags<T> bags{
      named, bounds, factor, padding_idx, bag_of.data_as<int64_t>(), bag_size.data_as<int64_t>()};
  const simd::RowTable<T> source{table, rows, row_stride, width};
  const auto for_each_bag = [&](int64_t begin, int64_t end, auto&& f) {
    std::vector<int64_t> kept;
    std::vector<T> chosen;
    for (int64_t bag = begin; bag < end; ++bag) {
      f(bags.rows_of(bag, kept, chosen), out.data_as<T>() + bag * width, bag);
    }
  };
  const auto add_up = [&](auto sums, int64_t begin, int64_t end) {
    for_each_bag(begin, end, [&](const BagRows<T>& bag, T* to, int64_t) {
      const int64_t divisor = mode == kMean && bag.count > 0 ? bag.count : 1;
      sums.sum(bag.rows, bag.factors, bag.count, bag.known, divisor, to);
    });
  };
  parallel_for(bag_count, grain_for(width * (1 + count / std::max<int64_t>(1, bag_count))),
               [&](int64_t begin, int64_t end) {
                 if (mode == kMax) {
                   return for_each_bag(begin, end, [&](const BagRows<T>& bag, T* to, int64_t b) {
                     largest_of(source, stride, bag, to,
                                max_indices.data_as<int64_t>() + b * width);
                   });
                 }
                 if constexpr (std::is_same_v<T, compute_type<T>>) {
                   if (stride == 1 || width == 1) return add_up(BagSums<T>(source), begin, end);
                 }
                 add_up(StridedBagSums<T>(source, stride), begin, end);
               });
}

const auto registered = register_kernels<aten::ops::_embedding_bag, DeviceType::CPU>(
    []<class T>() { return &embedding_bag_cpu<T>; }, "embedding_bag_cpu");

}  // namespace
}  // namespace treadle::cpu
