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

// One norm: the term of a difference, and the value of the sum of terms.
template <class T, class Step, class Finish>
void fill_distances(const Tensor& a, const Tensor& b, T* to, int64_t pairs, Step step,
                    Finish finish) {
  const int64_t rows = a.size(-2), columns = b.size(-2), width = a.size(-1);
  const int64_t cost = std::max<int64_t>(1, columns * std::max<int64_t>(1, width));
  const T *x = a.data_as<T>(), *y = b.data_as<T>();
  parallel_for(pairs * rows, std::max<int64_t>(1, 32768 / cost), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* p = x + i * width;
      const T* q = y + i / rows * columns * width;
      for (int64_t j = 0; j < columns; ++j, q += width) {
        double sum = 0;
        for (int64_t k = 0; k < width; ++k)
          step(sum, std::abs(static_cast<double>(p[k]) - static_cast<double>(q[k])));
        to[i * columns + j] = static_cast<T>(finish(sum));
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
  if (p == 0)
    fill_distances(
        a, b, to, pairs, [](double& sum, double d) { sum += d != 0; }, same);
  else if (p == 1)
    fill_distances(
        a, b, to, pairs, [](double& sum, double d) { sum += d; }, same);
  else if (p == 2)
    fill_distances(
        a, b, to, pairs, [](double& sum, double d) { sum += d * d; },
        [](double v) { return std::sqrt(v); });
  else if (p == std::numeric_limits<double>::infinity())
    fill_distances(
        a, b, to, pairs, [](double& sum, double d) { sum = d > sum || d != d ? d : sum; }, same);
  else
    fill_distances(
        a, b, to, pairs, [p](double& sum, double d) { sum += std::pow(d, p); },
        [p](double v) { return std::pow(v, 1 / p); });
}

const auto cdist_registered = register_kernels<aten::ops::_cdist, DeviceType::CPU>(
    []<class T>() { return &cdist_cpu<T>; }, "cdist_cpu");

}  // namespace
}  // namespace treadle::cpu
