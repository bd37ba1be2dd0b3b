// A block factors a matrix, by the steps of small_factor_steps.h.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/linalg/cuda/small_factors.h"

#include "aten/backend/cuda/kernels/device_number.cuh"
#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/linalg/cuda/small_factor_steps.h"

namespace treadle::cuda {
namespace {

constexpr int kThreads = 64;
constexpr int64_t kBytes = 40 * 1024;  // of shared memory, which every device has
constexpr int64_t kMany = 8;

// A matrix in shared memory.
template <class N>
__device__ N* loaded(const N* from, int size) {
  extern __shared__ __align__(16) unsigned char memory[];
  N* const matrix = reinterpret_cast<N*>(memory);
  for (int i = static_cast<int>(threadIdx.x); i < size; i += kThreads) matrix[i] = from[i];
  __syncthreads();
  return matrix;
}
template <class N>
__device__ void stored(const N* matrix, int size, N* to) {
  for (int i = static_cast<int>(threadIdx.x); i < size; i += kThreads) to[i] = matrix[i];
}

template <class N>
__global__ void lu_kernel(const N* from, N* lu, int32_t* pivots, int32_t* info, int rows,
                          int columns) {
  const int size = rows * columns, steps = rows < columns ? rows : columns;
  const int64_t block = blockIdx.x;
  N* const matrix = loaded(from + block * size, size);
  const int failed = factor_lu(matrix, rows, columns, pivots + block * steps,
                               static_cast<int>(threadIdx.x), kThreads, BlockMeets());
  stored(matrix, size, lu + block * size);
  if (threadIdx.x == 0) info[block] = failed;
}

template <class N>
__global__ void reflect_kernel(N* matrices, N* tau, int rows, int columns, int64_t stride) {
  const int size = rows * columns, steps = rows < columns ? rows : columns;
  const int64_t block = blockIdx.x;
  N* const matrix = loaded(matrices + block * stride, size);
  reflect_columns(matrix, rows, columns, tau + block * steps, static_cast<int>(threadIdx.x),
                  kThreads, BlockMeets());
  stored(matrix, size, matrices + block * stride);
}

template <class N>
__global__ void product_kernel(N* matrices, const N* tau, int rows, int columns, int k,
                               int64_t stride) {
  const int64_t block = blockIdx.x;
  N* const own = matrices + block * stride;
  const N* const reflectors = loaded(own, rows * k);
  for (int c = static_cast<int>(threadIdx.x); c < columns; c += kThreads)
    product_column(reflectors, tau + block * k, rows, k, c, own + static_cast<int64_t>(c) * rows);
}

template <class T>
DeviceNumber<T>* numbers(const Tensor& t) {
  return reinterpret_cast<DeviceNumber<T>*>(t.data_as<T>());
}
template <class T>
size_t bytes(int64_t elements) {
  return static_cast<size_t>(elements) * sizeof(T);
}

}  // namespace

bool suits_small_factors(int64_t count, int64_t rows, int64_t columns, int64_t item) {
  return count >= kMany && count <= INT32_MAX && rows * columns <= kBytes / item;
}

template <class T>
void small_lu(const Tensor& matrices, const Tensor& lu, const Tensor& pivots, const Tensor& info) {
  const int64_t rows = matrices.size(-2), columns = matrices.size(-1);
  const Place place(matrices);
  lu_kernel<<<static_cast<unsigned>(info.numel()), kThreads, bytes<T>(rows * columns),
              place.stream>>>(numbers<T>(matrices), numbers<T>(lu), pivots.data_as<int32_t>(),
                              info.data_as<int32_t>(), static_cast<int>(rows),
                              static_cast<int>(columns));
  check_launched();
}

template <class T>
void small_reflect(int64_t rows, int64_t columns, int64_t count, int64_t stride,
                   const Tensor& matrices, const Tensor& tau) {
  const Place place(matrices);
  reflect_kernel<<<static_cast<unsigned>(count), kThreads, bytes<T>(rows * columns),
                   place.stream>>>(numbers<T>(matrices), numbers<T>(tau), static_cast<int>(rows),
                                   static_cast<int>(columns), stride);
  check_launched();
}

template <class T>
void small_product(int64_t rows, int64_t columns, int64_t k, int64_t count, int64_t stride,
                   const Tensor& matrices, const Tensor& tau) {
  const Place place(matrices);
  product_kernel<<<static_cast<unsigned>(count), kThreads, bytes<T>(rows * k), place.stream>>>(
      numbers<T>(matrices), numbers<T>(tau), static_cast<int>(rows), static_cast<int>(columns),
      static_cast<int>(k), stride);
  check_launched();
}

#define TREADLE_SMALL_FACTORS(T)                                                             \
  template void small_lu<T>(const Tensor&, const Tensor&, const Tensor&, const Tensor&);     \
  template void small_reflect<T>(int64_t, int64_t, int64_t, int64_t, const Tensor&,          \
                                 const Tensor&);                                             \
  template void small_product<T>(int64_t, int64_t, int64_t, int64_t, int64_t, const Tensor&, \
                                 const Tensor&);
TREADLE_SMALL_FACTORS(float)
TREADLE_SMALL_FACTORS(double)
TREADLE_SMALL_FACTORS(std::complex<float>)
TREADLE_SMALL_FACTORS(std::complex<double>)
#undef TREADLE_SMALL_FACTORS

}  // namespace treadle::cuda
