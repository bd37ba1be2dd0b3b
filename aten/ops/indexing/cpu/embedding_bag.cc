// embedding_bag: the sum, mean or maximum of rows of a table, bag by bag, without a copy of the
// rows. Offsets and indices are checked before the first write.
//
// SPDX-License-Identifier: Apache-2.0
#include <utility>
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
  BagSums(int64_t width, int64_t longest, bool factors)
      : width_(width),
        sum_rows_(simd::sum_rows<T>()),
        rows_(static_cast<size_t>(longest)),
        factors_(static_cast<size_t>(factors ? longest : 0)) {}

  // At most `longest` times.
  void add(const T* row, const T* factor) {
    rows_[count_] = row;
    if (factor) factors_[count_] = *factor;
    ++count_;
  }

  // The sums by `divisor`; begins anew.
  void take(int64_t divisor, T* out) {
    const int64_t count = std::exchange(count_, 0);
    if (count > kSumRun) {
      total_.assign(static_cast<size_t>(width_), 0);
      for (int64_t row = 0; row < count; row += kSumRun)
        sum_rows(row, std::min(kSumRun, count - row), nullptr, total_.data());
      const auto by = static_cast<double>(divisor);
      for (int64_t k = 0; k < width_; ++k) out[k] = static_cast<T>(total_[k] / by);
    } else {
      sum_rows(0, count, out, nullptr);
      const T by = static_cast<T>(divisor);
      if (divisor != 1) std::for_each(out, out + width_, [by](T& sum) { sum /= by; });
    }
  }

 private:
  void sum_rows(int64_t first, int64_t count, T* out, double* total) const {
    sum_rows_(rows_.data() + first, factors_.empty() ? nullptr : factors_.data() + first, count,
              width_, out, total);
  }

  int64_t width_;
  simd::SumRows<T> sum_rows_;
  int64_t count_ = 0;
  std::vector<const T*> rows_;
  std::vector<T> factors_;
  std::vector<double> total_;
};

// The same for rows whose elements are not side by side or are no numbers of the processor.
template <class T>
class StridedBagSums {
  using C = compute_type<T>;

 public:
  StridedBagSums(int64_t width, int64_t stride) : width_(width), stride_(stride), sums_(width) {}

  void add(const T* row, const T* factor) {
    sums_.add_row([&](C* sum) {
      for (int64_t k = 0; k < width_; ++k) {
        const C value = static_cast<C>(row[k * stride_]);
        sum[k] += factor ? value * static_cast<C>(*factor) : value;
      }
    });
  }

  void take(int64_t divisor, T* out) {
    sums_.take([&](int64_t k, wide_type<C> sum) {
      out[k] = static_cast<T>(static_cast<C>(sum / static_cast<wide_type<C>>(divisor)));
    });
  }

 private:
  int64_t width_, stride_;
  ColumnSums<C> sums_;
};

// The rows of each bag, with the number of the bag and of the rows that are in it.
struct Bags {
  const std::vector<int64_t>& indices;
  const std::vector<int64_t>& bounds;
  int64_t padding_idx;
  int64_t *bag_of, *bag_size;

  // f(i) for each index that is not padding. The number of these.
  template <class F>
  int64_t for_each_row(int64_t bag, F&& f) const {
    int64_t used = 0;
    const int64_t first = bounds[bag], last = bounds[bag + 1];
    std::fill(bag_of + first, bag_of + last, bag);
    for (int64_t i = first; i < last; ++i) {
      if (indices[i] == padding_idx) continue;
      f(i);
      ++used;
    }
    bag_size[bag] = used;
    return used;
  }
};

template <class T>
void embedding_bag_cpu(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                       bool /*scale_grad_by_freq*/, int64_t mode, const Tensor& per_sample_weights,
                       bool /*include_last_offset*/, int64_t padding_idx, const Tensor& out,
                       const Tensor& bag_of, const Tensor& bag_size, const Tensor& max_indices) {
  using C = compute_type<T>;
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
  const Bags bags{named, bounds, padding_idx, bag_of.data_as<int64_t>(),
                  bag_size.data_as<int64_t>()};

  int64_t longest = 0;
  for (int64_t bag = 0; bag < bag_count; ++bag)
    longest = std::max(longest, bounds[bag + 1] - bounds[bag]);

  const auto add_up = [&](auto sums, int64_t begin, int64_t end) {
    for (int64_t bag = begin; bag < end; ++bag) {
      const int64_t used = bags.for_each_row(bag, [&](int64_t i) {
        sums.add(table + named[i] * row_stride, factor ? factor + i : nullptr);
      });
      sums.take(mode == kMean && used > 0 ? used : 1, out.data_as<T>() + bag * width);
    }
  };
  const auto find_most = [&](int64_t begin, int64_t end) {
    std::vector<C> most(static_cast<size_t>(width));
    for (int64_t bag = begin; bag < end; ++bag) {
      std::fill(most.begin(), most.end(), C(0));
      int64_t* const from = max_indices.data_as<int64_t>() + bag * width;
      std::fill_n(from, width, int64_t{-1});
      bool first = true;
      bags.for_each_row(bag, [&](int64_t i) {
        const T* const row = table + named[i] * row_stride;
        for (int64_t k = 0; k < width; ++k) {
          const C value = static_cast<C>(row[k * stride]);
          if (first || value > most[k] || value != value) {
            most[k] = value;
            from[k] = named[i];
          }
        }
        first = false;
      });
      T* const to = out.data_as<T>() + bag * width;
      for (int64_t k = 0; k < width; ++k) to[k] = static_cast<T>(most[k]);
    }
  };
  parallel_for(bag_count, grain_for(width * (1 + count / std::max<int64_t>(1, bag_count))),
               [&](int64_t begin, int64_t end) {
                 if (mode == kMax) return find_most(begin, end);
                 if constexpr (std::is_same_v<T, C>) {
                   if (stride == 1 || width == 1)
                     return add_up(BagSums<T>(width, longest, factor), begin, end);
                 }
                 add_up(StridedBagSums<T>(width, stride), begin, end);
               });
}

const auto registered = register_kernels<aten::ops::_embedding_bag, DeviceType::CPU>(
    []<class T>() { return &embedding_bag_cpu<T>; }, "embedding_bag_cpu");

}  // namespace
}  // namespace treadle::cpu
