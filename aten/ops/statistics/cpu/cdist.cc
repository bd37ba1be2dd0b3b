// _cdist: the p-norm of the difference between every point of one set and every point of another.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "aten/ops/_cdist.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/expand.h"
#include "aten/ops/linalg/cpu/linalg.h"
#include "aten/ops/statistics/cpu/distances.h"
#include "core/base/parallel.h"

namespace treadle::cpu {
namespace {

constexpr int64_t kBlock = simd::kDistanceBlock;

// The sets of `count` points each, in the blocks that simd::distances reads. The last block of a
// set has zeros behind its points.
template <class T>
class PointBlocks {
 public:
  PointBlocks(const T* points, int64_t sets, int64_t count, int64_t width)
      : per_set_((count + kBlock - 1) / kBlock),
        size_(width * kBlock),
        numbers_(static_cast<size_t>(sets * per_set_ * size_)) {
    parallel_for(sets * per_set_, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, size_)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t b = begin; b < end; ++b) {
                     const int64_t first = b % per_set_ * kBlock;
                     const T* const from = points + (b / per_set_ * count + first) * width;
                     double* const to = numbers_.data() + b * size_;
                     for (int64_t j = 0; j < std::min(kBlock, count - first); ++j) {
                       for (int64_t k = 0; k < width; ++k)
                         to[k * kBlock + j] = static_cast<double>(from[j * width + k]);
                     }
                   }
                 });
  }

  int64_t per_set() const { return per_set_; }
  const double* block(int64_t set, int64_t b) const {
    return numbers_.data() + (set * per_set_ + b) * size_;
  }

 private:
  int64_t per_set_, size_;
  std::vector<double> numbers_;
};

template <class T>
void cdist_cpu(const Tensor& x1, const Tensor& x2, double p, const Tensor& out) {
  if (out.numel() == 0) return;
  const auto spread = [&](const Tensor& t) {
    DimVector sizes(out.sizes());
    sizes[sizes.size() - 2] = t.size(-2);
    sizes.back() = t.size(-1);
    return aten::contiguous(aten::expand(t, sizes));
  };
  const Tensor a = spread(x1), b = spread(x2);
  const int64_t rows = a.size(-2), columns = b.size(-2), width = a.size(-1);
  const int64_t sets = MatrixBatch(out).count;
  const PointBlocks<T> others(b.data_as<T>(), sets, columns, width);
  const T* const points = a.data_as<T>();
  T* const to = out.data_as<T>();
  const simd::Distances<T> distances = simd::distances<T>();
  // A block stays in the cache for the points of a piece of work.
  const int64_t cost = columns * std::max<int64_t>(1, width);
  parallel_for(
      sets * rows, std::max<int64_t>(1, (1 << 18) / cost), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end;) {
          const int64_t set = i / rows, last = std::min(end, (set + 1) * rows);
          for (int64_t block = 0; block < others.per_set(); ++block) {
            const int64_t first = block * kBlock, count = std::min(kBlock, columns - first);
            for (int64_t row = i; row < last; ++row)
              distances(p, points + row * width, others.block(set, block), width, count,
                        to + row * columns + first);
          }
          i = last;
        }
      });
}

const auto cdist_registered = register_kernels<aten::ops::_cdist, DeviceType::CPU>(
    []<class T>() { return &cdist_cpu<T>; }, "cdist_cpu");

}  // namespace
}  // namespace treadle::cpu
