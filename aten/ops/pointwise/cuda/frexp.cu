// frexp: splits floating numbers into mantissa and exponent.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/contiguous.h"
#include "aten/ops/frexp.h"

namespace treadle::cuda {
namespace {

template <class T>
__global__ void frexp_kernel(const T* from, T* mantissas, int32_t* exponents, int64_t n) {
  for_each_element(n, [=](int64_t i) {
    const Computed<T> v = widened(from[i]);
    int power = 0;
    mantissas[i] = narrowed<T>(isfinite(v) ? frexp(v, &power) : v);
    exponents[i] = power;
  });
}

template <class T>
void frexp_cuda(const Tensor& self, const Tensor& mantissa, const Tensor& exponent) {
  const int64_t n = self.numel();
  if (n == 0) return;
  const Tensor input = aten::contiguous(self);
  const Place place(self);
  frexp_kernel<<<blocks_for(n), kBlock, 0, place.stream>>>(
      input.data_as<T>(), mantissa.data_as<T>(), exponent.data_as<int32_t>(), n);
  check_launched();
}

const auto frexp_registered = register_cuda<aten::ops::frexp_Tensor>(
    Floats(), []<class T>() { return &frexp_cuda<T>; }, "frexp_cuda");

}  // namespace
}  // namespace treadle::cuda
