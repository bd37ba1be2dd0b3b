// _cdist: the p-norm of the difference between every point of one set and every point of another.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <type_traits>
#include <vector>

#include "aten/backend/cpu/gemm.h"
#include "aten/ops/_cdist.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/expand.h"
#include "aten/ops/linalg/cpu/linalg.h"
#include "aten/ops/statistics/cpu/distances.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

constexpr int64_t kBlock = simd::kDistanceBlock;

// The sets of `count` points each, in the blocks that simd::distances reads. The last block of a
// set has zeros behind its points.
template <class T, class C>
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
                     C* const to = numbers_.data() + b * size_;
                     for (int64_t j = 0; j < std::min(kBlock, count - first); ++j) {
                       for (int64_t k = 0; k < width; ++k)
                         to[k * kBlock + j] = static_cast<C>(from[j * width + k]);
                     }
                   }
                 });
  }

  int64_t per_set() const { return per_set_; }
  const C* block(int64_t set, int64_t b) const {
    return numbers_.data() + (set * per_set_ + b) * size_;
  }

 private:
  int64_t per_set_, size_;
  std::vector<C> numbers_;
};

// `sets` pairs of sets: the points a of one, the points b of the other, and the distances.
template <class T>
struct PointSets {
  const T *a, *b;
  T* out;
  int64_t sets, rows, columns, width;

  // f(set, first row, last row) of pieces of the rows.
  template <class F>
  void for_rows(int64_t work_of_row, F&& f) const {
    parallel_for(sets * rows, std::max<int64_t>(1, (1 << 18) / std::max<int64_t>(1, work_of_row)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end;) {
                     const int64_t set = i / rows, last = std::min(end, (set + 1) * rows);
                     f(set, i, last);
                     i = last;
                   }
                 });
  }
};

template <class C, class T>
void from_differences(const PointSets<T>& s, double p) {
  const PointBlocks<T, C> others(s.b, s.sets, s.columns, s.width);
  const simd::Distances<T, C> distances = simd::distances<T, C>();
  s.for_rows(s.columns * s.width, [&](int64_t set, int64_t begin, int64_t end) {
    // A block stays in the cache for the points of a piece of work.
    for (int64_t block = 0; block < others.per_set(); ++block) {
      const int64_t first = block * kBlock, count = std::min(kBlock, s.columns - first);
      for (int64_t row = begin; row < end; ++row)
        distances(p, s.a + row * s.width, others.block(set, block), s.width, count,
                  s.out + row * s.columns + first);
    }
  });
}

// Points of fewer coordinates are compared faster than multiplied.
constexpr int64_t kLeastWidth = 8;

void from_products(const PointSets<float>& s) {
  const simd::EuclideanLoops& loops = simd::euclidean_loops();
  const auto squares = [&](const float* points, int64_t count) {
    std::vector<float> all(static_cast<size_t>(count));
    parallel_for(count, std::max<int64_t>(1, 32768 / s.width), [&](int64_t begin, int64_t end) {
      loops.squares(points + begin * s.width, end - begin, s.width, all.data() + begin);
    });
    return all;
  };
  const std::vector<float> of_a = squares(s.a, s.sets * s.rows);
  const std::vector<float> of_b = squares(s.b, s.sets * s.columns);
  for (int64_t set = 0; set < s.sets; ++set) {
    gemm(MatrixView<float>{s.a + set * s.rows * s.width, s.rows, s.width, s.width, 1},
         MatrixView<float>{s.b + set * s.columns * s.width, s.width, s.columns, 1, s.width},
         s.out + set * s.rows * s.columns, s.columns, -2.0f, 0.0f);
  }
  s.for_rows(8 * s.columns, [&](int64_t set, int64_t begin, int64_t end) {
    const int64_t first = set * s.columns;
    for (int64_t row = begin; row < end; ++row)
      loops.finish(s.a + row * s.width, of_a[static_cast<size_t>(row)], s.b + first * s.width,
                   of_b.data() + first, s.width, s.columns, s.out + row * s.columns);
  });
}

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
  const PointSets<T> s{a.data_as<T>(), b.data_as<T>(), out.data_as<T>(), MatrixBatch(out).count,
                       a.size(-2),     b.size(-2),     a.size(-1)};
  if constexpr (std::is_same_v<T, float>) {
    if (p == 2 && s.width >= kLeastWidth) return from_products(s);
    if (simd::differences_are_float(p)) return from_differences<float>(s, p);
  }
  from_differences<double>(s, p);
}

const auto cdist_registered = register_kernels<aten::ops::_cdist, DeviceType::CPU>(
    []<class T>() { return &cdist_cpu<T>; }, "cdist_cpu");

}  // namespace
}  // namespace treadle::cpu
