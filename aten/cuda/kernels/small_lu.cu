// A block factors a matrix, a column after the other.
#include "aten/cuda/kernels/small_lu.h"

#include "aten/cuda/kernels/device_number.cuh"
#include "aten/cuda/kernels/kernel.cuh"

namespace treadle::cuda {
namespace {

constexpr int kThreads = 64;
constexpr int64_t kBytes = 40 * 1024;  // of shared memory, which every device has
constexpr int64_t kMany = 8;

template <class R>
__device__ R size_of(R v) {
  return v < 0 ? -v : v;
}
template <class R>
__device__ R size_of(const ::cuda::std::complex<R>& v) {
  return size_of(v.real()) + size_of(v.imag());
}

// The row from `first` on with the largest element of a column, the first of those. By one warp.
template <class N>
__device__ int largest_row(const N* matrix, int rows, int columns, int column, int first) {
  using R = decltype(size_of(N()));
  R best = -1;
  int at = first;
  for (int i = first + static_cast<int>(threadIdx.x); i < rows; i += 32) {
    const R v = size_of(matrix[i * columns + column]);
    if (v > best) {
      best = v;
      at = i;
    }
  }
  for (int step = 16; step > 0; step /= 2) {
    const R other = __shfl_down_sync(0xffffffffu, best, step);
    const int where = __shfl_down_sync(0xffffffffu, at, step);
    if (other > best || (other == best && where < at)) {
      best = other;
      at = where;
    }
  }
  return at;  // of the first thread
}

template <class N>
__global__ void small_lu_kernel(const N* from, N* lu, int32_t* pivots, int32_t* info, int rows,
                                int columns) {
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ int pivot, failed;
  N* const matrix = reinterpret_cast<N*>(memory);
  const int size = rows * columns, steps = rows < columns ? rows : columns;
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t start = static_cast<int64_t>(blockIdx.x) * size;
  for (int i = thread; i < size; i += kThreads) matrix[i] = from[start + i];
  if (thread == 0) failed = 0;
  __syncthreads();
  for (int j = 0; j < steps; ++j) {
    if (thread < 32) {
      const int found = largest_row(matrix, rows, columns, j, j);
      if (thread == 0) {
        pivot = found;
        pivots[static_cast<int64_t>(blockIdx.x) * steps + j] = found + 1;
        if (size_of(matrix[found * columns + j]) == 0 && failed == 0) failed = j + 1;
      }
    }
    __syncthreads();
    const int other = pivot;
    const N head = matrix[other * columns + j];
    __syncthreads();
    if (size_of(head) == 0) continue;  // so are all below, and nothing changes
    if (other != j) {
      for (int c = thread; c < columns; c += kThreads) {
        const N kept = matrix[j * columns + c];
        matrix[j * columns + c] = matrix[other * columns + c];
        matrix[other * columns + c] = kept;
      }
    }
    __syncthreads();
    for (int i = j + 1 + thread; i < rows; i += kThreads) matrix[i * columns + j] /= head;
    __syncthreads();
    const int width = columns - j - 1;
    for (int i = thread; i < (rows - j - 1) * width; i += kThreads) {
      const int row = j + 1 + i / width, column = j + 1 + i % width;
      matrix[row * columns + column] -= matrix[row * columns + j] * matrix[j * columns + column];
    }
    __syncthreads();
  }
  for (int i = thread; i < size; i += kThreads) lu[start + i] = matrix[i];
  if (thread == 0) info[blockIdx.x] = failed;
}

}  // namespace

bool suits_small_lu(int64_t count, int64_t rows, int64_t columns, int64_t item) {
  return count >= kMany && count <= INT32_MAX && rows * columns <= kBytes / item;
}

template <class T>
void small_lu(const Tensor& matrices, const Tensor& lu, const Tensor& pivots, const Tensor& info) {
  using N = DeviceNumber<T>;
  const int64_t rows = matrices.size(-2), columns = matrices.size(-1);
  const Place place(matrices);
  small_lu_kernel<<<static_cast<unsigned>(info.numel()), kThreads,
                    static_cast<size_t>(rows * columns) * sizeof(T), place.stream>>>(
      reinterpret_cast<const N*>(matrices.data_as<T>()), reinterpret_cast<N*>(lu.data_as<T>()),
      pivots.data_as<int32_t>(), info.data_as<int32_t>(), static_cast<int>(rows),
      static_cast<int>(columns));
  check_launched();
}
template void small_lu<float>(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void small_lu<double>(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void small_lu<std::complex<float>>(const Tensor&, const Tensor&, const Tensor&,
                                            const Tensor&);
template void small_lu<std::complex<double>>(const Tensor&, const Tensor&, const Tensor&,
                                             const Tensor&);

}  // namespace treadle::cuda
