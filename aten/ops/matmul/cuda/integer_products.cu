// Matrix products of integers, which wrap, and of bool, whose sum is "or": mm, addmm, bmm, baddbmm.
// 256 threads hold 64 by 64 sums, four by four each. Matrices may have any strides.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/addmm.h"
#include "aten/ops/baddbmm.h"
#include "aten/ops/bmm.h"
#include "aten/ops/matmul/cuda/addend.h"
#include "aten/ops/mm.h"

namespace treadle::cuda {
namespace {

constexpr int kSide = 16, kTile = 64, kPer = kTile / kSide, kSlice = 16;

template <class T>
struct Matrices {
  const T* data;
  int64_t batch, row, column;  // strides
};

// The unsigned integers that a product of T is computed in.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
__global__ void __launch_bounds__(kBlock)
    product_kernel(Matrices<T> a, Matrices<T> b, int64_t rows, int64_t columns, int64_t inner,
                   int64_t column_tiles, Wrapping<T> alpha, Wrapping<T> beta, T* out) {
  using U = Wrapping<T>;
  constexpr bool kTruth = std::is_same_v<T, bool>;
  __shared__ U left[kSlice][kTile + 1], right[kSlice][kTile + 1];
  const int across = threadIdx.x % kSide, down = threadIdx.x / kSide;
  const int64_t r0 = blockIdx.x / column_tiles * kTile, c0 = blockIdx.x % column_tiles * kTile;
  a.data += blockIdx.y * a.batch;
  b.data += blockIdx.y * b.batch;
  out += blockIdx.y * rows * columns;
  U sums[kPer][kPer] = {};
  for (int64_t k0 = 0; k0 < inner; k0 += kSlice) {
    for (int i = threadIdx.x; i < kTile * kSlice; i += kBlock) {
      const int64_t r = r0 + i / kSlice, k = k0 + i % kSlice;
      left[i % kSlice][i / kSlice] =
          r < rows && k < inner ? static_cast<U>(widened(a.data[r * a.row + k * a.column])) : U(0);
      const int64_t c = c0 + i % kTile, e = k0 + i / kTile;
      right[i / kTile][i % kTile] = c < columns && e < inner
                                        ? static_cast<U>(widened(b.data[e * b.row + c * b.column]))
                                        : U(0);
    }
    __syncthreads();
    for (int e = 0; e < kSlice; ++e) {
#pragma unroll
      for (int i = 0; i < kPer; ++i) {
#pragma unroll
        for (int j = 0; j < kPer; ++j) {
          const U product = left[e][down * kPer + i] * right[e][across + kSide * j];
          sums[i][j] = kTruth ? sums[i][j] | product : sums[i][j] + product;
        }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kPer; ++i) {
#pragma unroll
    for (int j = 0; j < kPer; ++j) {
      const int64_t r = r0 + down * kPer + i, c = c0 + across + kSide * j;
      if (r >= rows || c >= columns) continue;
      T& to = out[r * columns + c];
      U value = sums[i][j] * alpha;
      if (beta != 0) value += beta * static_cast<U>(widened(to));
      to = static_cast<T>(value);
    }
  }
}

// out = alpha a b + beta out.
template <class T>
void multiply(const Tensor& a, const Tensor& b, const Tensor& out, const Scalar& alpha,
              const Scalar& beta) {
  if (out.numel() == 0) return;
  const size_t d = out.sizes().size() - 2;
  const int64_t batch = d ? out.sizes()[0] : 1, rows = out.sizes()[d], columns = out.sizes()[d + 1];
  const int64_t row_tiles = (rows + kTile - 1) / kTile,
                column_tiles = (columns + kTile - 1) / kTile;
  check<ErrorKind::Runtime>(
      batch <= 65535 && row_tiles * column_tiles <= INT32_MAX, OpName("mm"),
      "expected at most 65535 integer matrices, each of fewer than 2^43 elements, on cuda, got "
      "shape ",
      out.sizes());
  const auto view = [d](const Tensor& t) {
    const IntList s = t.strides();
    return Matrices<T>{t.data_as<T>(), d ? s[0] : 0, s[d], s[d + 1]};
  };
  using U = Wrapping<T>;
  const Place place(out);
  product_kernel<T>
      <<<dim3(static_cast<unsigned>(row_tiles * column_tiles), static_cast<unsigned>(batch)),
         kBlock, 0, place.stream>>>(view(a), view(b), rows, columns, a.sizes()[d + 1], column_tiles,
                                    static_cast<U>(alpha.to<T>()), static_cast<U>(beta.to<T>()),
                                    out.data_as<T>());
  check_launched();
}

template <class T>
void mm_cuda(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  multiply<T>(self, mat2, out, Scalar(1), Scalar(0));
}
template <class T>
void addmm_cuda(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                const Scalar& alpha, const Tensor& out) {
  if (!beta.equal(0)) fill_with(self, out);
  multiply<T>(mat1, mat2, out, alpha, beta);
}

using Integers =
    TypeList<bool, uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t>;
const auto mm_registered = register_cuda<aten::ops::mm>(
    Integers(), []<class T>() { return &mm_cuda<T>; }, "mm_cuda");
const auto bmm_registered = register_cuda<aten::ops::bmm>(
    Integers(), []<class T>() { return &mm_cuda<T>; }, "mm_cuda");
const auto addmm_registered = register_cuda<aten::ops::addmm>(
    Integers(), []<class T>() { return &addmm_cuda<T>; }, "addmm_cuda");
const auto baddbmm_registered = register_cuda<aten::ops::baddbmm>(
    Integers(), []<class T>() { return &addmm_cuda<T>; }, "addmm_cuda");

}  // namespace
}  // namespace treadle::cuda
