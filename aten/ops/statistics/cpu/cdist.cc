// _cdist: the p-norm of the difference between every point of one set and every point of another.
//
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "aten/backend/cpu/long_sums.h"
#include "aten/ops/_cdist.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/expand.h"
#include "aten/ops/linalg/cpu/linalg.h"

namespace treadle::cpu {
namespace {

// `norm(n, size)` is the norm of n differences, of which size(k) is the absolute value of one.
template <class T, class Norm>
void fill_distances(const Tensor& a, const Tensor& b, T* to, int64_t pairs, Norm norm) {
  const int64_t rows = a.size(-2), columns = b.size(-2), width = a.size(-1);
  const int64_t cost = std::max<int64_t>(1, columns * std::max<int64_t>(1, width));
  const T *x = a.data_as<T>(), *y = b.data_as<T>();
  parallel_for(pairs * rows, std::max<int64_t>(1, 32768 / cost), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* p = x + i * width;
      const T* q = y + i / rows * columns * width;
      for (int64_t j = 0; j < columns; ++j, q += width) {
        const auto size = [&](int64_t k) {
          return std::abs(static_cast<double>(p[k]) - static_cast<double>(q[k]));
        };
        to[i * columns + j] = static_cast<T>(norm(width, size));
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
  const auto fill = [&](auto norm) { fill_distances(a, b, to, pairs, norm); };
  if (p == 0) {
    fill([](int64_t n, auto size) {
      int64_t count = 0;  // is exact in any order
      for (int64_t k = 0; k < n; ++k) count += size(k) != 0 ? 1 : 0;
      return static_cast<double>(count);
    });
  } else if (p == 1) {
    fill([](int64_t n, auto size) { return long_sum<double>(n, size); });
  } else if (p == 2) {
    fill([](int64_t n, auto size) {
      const auto square = [&](int64_t k) {
        const double d = size(k);
        return d * d;
      };
      return std::sqrt(long_sum<double>(n, square));
    });
  } else if (p == std::numeric_limits<double>::infinity()) {
    fill([](int64_t n, auto size) {
      double largest = 0;
      for (int64_t k = 0; k < n; ++k) {
        const double d = size(k);
        if (d > largest || d != d) largest = d;
      }
      return largest;
    });
  } else {
    fill([p](int64_t n, auto size) {
      return std::pow(long_sum<double>(n, [&](int64_t k) { return std::pow(size(k), p); }), 1 / p);
    });
  }
}

const auto cdist_registered = register_kernels<aten::ops::_cdist, DeviceType::CPU>(
    []<class T>() { return &cdist_cpu<T>; }, "cdist_cpu");

}  // namespace
}  // namespace treadle::cpu
