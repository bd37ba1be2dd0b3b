// _cdist: the p-norm of the difference between every point of one set and every point of another,
// with a thread for each pair, in double as on the CPU.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/_cdist.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/expand.h"

namespace treadle::cuda {
namespace {

// The term of a difference, and the value of the sum of terms.
struct CountNorm {
  __device__ double add(double sum, double d) const { return sum + (d != 0); }
  __device__ double finish(double sum) const { return sum; }
};
struct SumNorm {
  __device__ double add(double sum, double d) const { return sum + d; }
  __device__ double finish(double sum) const { return sum; }
};
struct EuclideanNorm {
  __device__ double add(double sum, double d) const { return sum + d * d; }
  __device__ double finish(double sum) const { return sqrt(sum); }
};
struct LargestNorm {
  __device__ double add(double sum, double d) const { return d > sum || d != d ? d : sum; }
  __device__ double finish(double sum) const { return sum; }
};
struct PowerNorm {
  double p;
  __device__ double add(double sum, double d) const { return sum + pow(d, p); }
  __device__ double finish(double sum) const { return pow(sum, 1 / p); }
};

template <class T, class Norm>
__global__ void distance_kernel(const T* a, const T* b, T* out, int64_t n, int64_t rows,
                                int64_t columns, int64_t width, Norm norm) {
  for_each_element(n, [=](int64_t i) {
    const int64_t column = i % columns, row = i / columns;
    const T* const p = a + row * width;
    const T* const q = b + (row / rows * columns + column) * width;
    double sum = 0;
    for (int64_t k = 0; k < width; ++k)
      sum = norm.add(sum, fabs(static_cast<double>(p[k]) - static_cast<double>(q[k])));
    out[i] = static_cast<T>(norm.finish(sum));
  });
}

template <class T>
void cdist_cuda(const Tensor& x1, const Tensor& x2, double p, const Tensor& out) {
  if (out.numel() == 0) return;
  const auto spread = [&](const Tensor& t) {
    DimVector sizes(out.sizes());
    sizes[sizes.size() - 2] = t.size(-2);
    sizes.back() = t.size(-1);
    return aten::contiguous(aten::expand(t, sizes));
  };
  const Tensor a = spread(x1), b = spread(x2);
  const Place place(out);
  const auto launch = [&](auto norm) {
    distance_kernel<<<blocks_for(out.numel()), kBlock, 0, place.stream>>>(
        a.data_as<T>(), b.data_as<T>(), out.data_as<T>(), out.numel(), a.size(-2), b.size(-2),
        a.size(-1), norm);
    check_launched();
  };
  if (p == 0)
    launch(CountNorm());
  else if (p == 1)
    launch(SumNorm());
  else if (p == 2)
    launch(EuclideanNorm());
  else if (p == std::numeric_limits<double>::infinity())
    launch(LargestNorm());
  else
    launch(PowerNorm{p});
}

const auto cdist_registered = register_cuda<aten::ops::_cdist>(
    TypeList<float, double>(), []<class T>() { return &cdist_cuda<T>; }, "cdist_cuda");

}  // namespace
}  // namespace treadle::cuda
