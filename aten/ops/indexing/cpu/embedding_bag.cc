// embedding_bag: the sum, mean or maximum of rows of a table, bag by bag, without a copy of the
// rows. Offsets and indices are checked before the first write.
//
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "aten/backend/cpu/dim_slices.h"
#include "aten/backend/cpu/long_sums.h"
#include "aten/ops/_embedding_bag.h"
#include "aten/ops/contiguous.h"
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

template <class T>
void embedding_bag_cpu(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                       bool /*scale_grad_by_freq*/, int64_t mode, const Tensor& per_sample_weights,
                       bool /*include_last_offset*/, int64_t padding_idx, const Tensor& out,
                       const Tensor& bag_of, const Tensor& bag_size, const Tensor& max_indices) {
  using C = compute_type<T>;
  const Tensor index = aten::contiguous(indices), starts = aten::contiguous(offsets);
  const Tensor factors =
      per_sample_weights.defined() ? aten::contiguous(per_sample_weights) : Tensor();
  const int64_t bags = out.size(0), width = out.size(1), rows = weight.size(0);
  const int64_t count = index.numel();
  const std::vector<int64_t> named(index.data_as<int64_t>(), index.data_as<int64_t>() + count);
  for (const int64_t i : named) {
    check<ErrorKind::Runtime>(i >= 0 && i < rows, OpName("embedding_bag"), "expected index in [0, ",
                              rows, "), got index = ", i);
  }
  const std::vector<int64_t> bounds = checked_bounds(starts, bags, count);
  std::fill_n(bag_of.data_as<int64_t>(), count, bags > 0 ? bags - 1 : 0);
  const int64_t row_stride = weight.stride(0), stride = weight.stride(1);
  parallel_for(
      bags, grain_for(width * (1 + count / std::max<int64_t>(1, bags))),
      [&](int64_t begin, int64_t end) {
        ColumnSums<C> sums(width);
        std::vector<C> most(static_cast<size_t>(mode == kMax ? width : 0));
        for (int64_t bag = begin; bag < end; ++bag) {
          std::fill(most.begin(), most.end(), C(0));
          int64_t* from = mode == kMax ? max_indices.data_as<int64_t>() + bag * width : nullptr;
          if (from) std::fill_n(from, width, int64_t{-1});
          int64_t used = 0;
          for (int64_t i = bounds[bag]; i < bounds[bag + 1]; ++i) {
            bag_of.data_as<int64_t>()[i] = bag;
            if (named[i] == padding_idx) continue;
            const T* row = weight.data_as<T>() + named[i] * row_stride;
            const C factor = factors.defined() ? static_cast<C>(factors.data_as<T>()[i]) : C(1);
            if (mode != kMax) {
              sums.add_row([&](C* sum) {
                for (int64_t k = 0; k < width; ++k) {
                  const C value = static_cast<C>(row[k * stride]);
                  sum[k] += factors.defined() ? value * factor : value;
                }
              });
            } else {
              for (int64_t k = 0; k < width; ++k) {
                const C value = static_cast<C>(row[k * stride]);
                if (used == 0 || value > most[k] || value != value) {
                  most[k] = value;
                  from[k] = named[i];
                }
              }
            }
            ++used;
          }
          bag_size.data_as<int64_t>()[bag] = used;
          T* to = out.data_as<T>() + bag * width;
          if (mode == kMax) {
            for (int64_t k = 0; k < width; ++k) to[k] = static_cast<T>(most[k]);
            continue;
          }
          const auto divisor = static_cast<wide_type<C>>(mode == kMean && used > 0 ? used : 1);
          sums.take([&](int64_t k, wide_type<C> sum) {
            to[k] = static_cast<T>(static_cast<C>(sum / divisor));
          });
        }
      });
}

const auto registered = register_kernels<aten::ops::_embedding_bag, DeviceType::CPU>(
    []<class T>() { return &embedding_bag_cpu<T>; }, "embedding_bag_cpu");

}  // namespace
}  // namespace treadle::cpu
