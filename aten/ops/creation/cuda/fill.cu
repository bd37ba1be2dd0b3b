// Fills with constant numbers, and the read of one number by the host.
//
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/_fill_.h"
#include "aten/ops/_local_scalar_dense.h"

namespace treadle::cuda {
namespace {

template <class Unit>
__global__ void fill_kernel(Unit* out, Unit value, int64_t n) {
  for_each_element(n, [=](int64_t i) { out[i] = value; });
}

template <class T>
void fill_cuda(const Tensor& self, const Scalar& value) {
  if (self.numel() == 0) return;
  const T v = value.checked_to<T>("fill_");
  Bits<T> bits;
  std::memcpy(&bits, &v, sizeof bits);
  const Place place(self);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&v);
  if (std::all_of(bytes, bytes + sizeof v, [&](unsigned char b) { return b == bytes[0]; })) {
    succeed(
        cudaMemsetAsync(self.data(), bytes[0], static_cast<size_t>(self.nbytes()), place.stream),
        "filling memory");
    return;
  }
  fill_kernel<<<blocks_for(self.numel()), kBlock, 0, place.stream>>>(self.data_as<Bits<T>>(), bits,
                                                                     self.numel());
  check_launched();
}

template <class T>
Scalar local_scalar_dense_cuda(const Tensor& self) {
  return Scalar(number_at<T>(self, 0));
}

const auto fill_registered = register_cuda<aten::ops::_fill_>(
    AllTypes(), []<class T>() { return &fill_cuda<T>; }, "fill_cuda");
const auto local_scalar_dense_registered = register_cuda<aten::ops::_local_scalar_dense>(
    AllTypes(), []<class T>() { return &local_scalar_dense_cuda<T>; }, "local_scalar_dense_cuda");

}  // namespace
}  // namespace treadle::cuda
