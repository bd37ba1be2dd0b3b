// _cdist: the p-norm of the difference between every point of one set and every point of another.
//
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "aten/ops/_cdist.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/expand.h"
#include "aten/ops/linalg/cpu/linalg.h"

namespace treadle::cpu {
namespace {

constexpr int64_t kLanes = 8;

// One norm. `term` is that of a difference's size, `join` joins terms, `finish` gives the value.
// Terms are joined in lanes, which do not wait for each other.
template <class T, class Term, class Join, class Finish>
void fill_distances(const Tensor& a, const Tensor& b, T* to, int64_t pairs, Term term, Join join,
                    Finish finish) {
  const int64_t rows = a.size(-2), columns = b.size(-2), width = a.size(-1);
  const int64_t cost = std::max<int64_t>(1, columns * std::max<int64_t>(1, width));
  const T *x = a.data_as<T>(), *y = b.data_as<T>();
  parallel_for(pairs * rows, std::max<int64_t>(1, 32768 / cost), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* p = x + i * width;
      const T* q = y + i / rows * columns * width;
      for (int64_t j = 0; j < columns; ++j, q += width) {
        double lanes[kLanes] = {};
        const auto add = [&](int64_t k, int64_t lane) {
          const double size = std::abs(static_cast<double>(p[k]) - static_cast<double>(q[k]));
          lanes[lane] = join(lanes[lane], term(size));
        };
        int64_t k = 0;
        for (; k + kLanes <= width; k += kLanes) {
          for (int64_t lane = 0; lane < kLanes; ++lane) add(k + lane, lane);
        }
        for (int64_t lane = 0; k < width; ++k, ++lane) add(k, lane);
        for (int64_t half = kLanes / 2; half > 0; half /= 2) {
          for (int64_t lane = 0; lane < half; ++lane)
            lanes[lane] = join(lanes[lane], lanes[lane + half]);
        }
        to[i * columns + j] = static_cast<T>(finish(lanes[0]));
      }
    }
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
  T* const to = out.data_as<T>();
  const int64_t pairs = MatrixBatch(out).count;
  const auto same = [](double v) { return v; };
  const auto sum = [](double x, double y) { return x + y; };
  const auto largest = [](double x, double y) { return y > x || y != y ? y : x; };
  if (p == 0)
    fill_distances(
        a, b, to, pairs, [](double d) { return static_cast<double>(d != 0); }, sum, same);
  else if (p == 1)
    fill_distances(a, b, to, pairs, same, sum, same);
  else if (p == 2)
    fill_distances(
        a, b, to, pairs, [](double d) { return d * d; }, sum,
        [](double v) { return std::sqrt(v); });
  else if (p == std::numeric_limits<double>::infinity())
    fill_distances(a, b, to, pairs, same, largest, same);
  else
    fill_distances(
        a, b, to, pairs, [p](double d) { return std::pow(d, p); }, sum,
        [p](double v) { return std::pow(v, 1 / p); });
}

const auto cdist_registered = register_kernels<aten::ops::_cdist, DeviceType::CPU>(
    []<class T>() { return &cdist_cpu<T>; }, "cdist_cpu");

}  // namespace
}  // namespace treadle::cpu
