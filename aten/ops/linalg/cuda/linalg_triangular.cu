// Triangular systems, and the permutation of LU's pivots.
//
// A triangle is halved until its blocks have 32 rows. Those are solved here, with a thread for each
// column of the right side. Their contribution to the other rows is a product of matrices.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/device_number.cuh"
#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/_lu_permutation.h"
#include "aten/ops/bmm.h"
#include "aten/ops/clone.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/copy_.h"
#include "aten/ops/expand.h"
#include "aten/ops/linalg/shape.h"
#include "aten/ops/linalg_solve_triangular.h"
#include "aten/ops/narrow.h"
#include "aten/ops/reshape.h"
#include "aten/ops/sub.h"
#include "aten/ops/transpose.h"

namespace treadle::cuda {
namespace {

constexpr int kLeaf = 32;
constexpr int kColumns = 128;  // of the right side, for a block

// Matrices (count, n, n) of any strides, of which the block at (first, first) with `rows` rows is
// solved; the right sides are (count, n, columns), contiguous.
struct LeafGeometry {
  int64_t batch, down, across;  // strides of the matrices
  int64_t n, columns, first, tiles;
  int rows;
  bool unit;
};
template <class N, bool upper>
__global__ void solve_leaf(const N* matrices, N* sides, LeafGeometry g) {
  __shared__ __align__(16) unsigned char bytes[sizeof(N) * kLeaf * kLeaf];
  N* const block = reinterpret_cast<N*>(bytes);
  const int64_t matrix = blockIdx.x / g.tiles;
  const int64_t column = blockIdx.x % g.tiles * kColumns + threadIdx.x;
  const N* const from = matrices + matrix * g.batch + g.first * (g.down + g.across);
  for (int i = threadIdx.x; i < g.rows * g.rows; i += kColumns)
    block[i / g.rows * kLeaf + i % g.rows] = from[i / g.rows * g.down + i % g.rows * g.across];
  __syncthreads();
  if (column >= g.columns) return;
  N* const side = sides + (matrix * g.n + g.first) * g.columns + column;
  N x[kLeaf];
#pragma unroll
  for (int r = 0; r < kLeaf; ++r) {
    if (r < g.rows) x[r] = side[r * g.columns];
  }
#pragma unroll
  for (int step = 0; step < kLeaf; ++step) {
    const int r = upper ? kLeaf - 1 - step : step;
    if (r >= g.rows) continue;
    N v = x[r];
#pragma unroll
    for (int before = 0; before < kLeaf; ++before) {
      const int c = upper ? kLeaf - 1 - before : before;
      if (before < step && c < g.rows) v -= block[r * kLeaf + c] * x[c];
    }
    x[r] = g.unit ? v : v / block[r * kLeaf + r];
    side[r * g.columns] = x[r];
  }
}

// Solves rows `first` to `last` of `sides`, which hold the reduced right side.
template <class T>
void solve_rows(const Tensor& matrices, const Tensor& sides, bool upper, bool unit, int64_t first,
                int64_t last, const Place& place) {
  if (last - first <= kLeaf) {
    using N = DeviceNumber<T>;
    const int64_t columns = sides.size(2), tiles = (columns + kColumns - 1) / kColumns;
    const LeafGeometry g{matrices.strides()[0],
                         matrices.strides()[1],
                         matrices.strides()[2],
                         sides.size(1),
                         columns,
                         first,
                         tiles,
                         static_cast<int>(last - first),
                         unit};
    const auto kernel = upper ? &solve_leaf<N, true> : &solve_leaf<N, false>;
    kernel<<<static_cast<unsigned>(sides.size(0) * tiles), kColumns, 0, place.stream>>>(
        reinterpret_cast<const N*>(matrices.data_as<T>()), reinterpret_cast<N*>(sides.data_as<T>()),
        g);
    check_launched();
    return;
  }
  const int64_t halves = (last - first + 1) / 2;
  const int64_t middle = first + (halves + kLeaf - 1) / kLeaf * kLeaf;
  const auto block = [](const Tensor& t, int64_t begin, int64_t end) {
    return aten::narrow(t, 1, begin, end - begin);
  };
  // Rows known, and rows that they are taken from.
  const int64_t known = upper ? middle : first, known_end = upper ? last : middle,
                rest = upper ? first : middle, rest_end = upper ? middle : last;
  solve_rows<T>(matrices, sides, upper, unit, known, known_end, place);
  const Tensor factor = aten::narrow(block(matrices, rest, rest_end), 2, known, known_end - known);
  aten::sub_(block(sides, rest, rest_end), aten::bmm(factor, block(sides, known, known_end)));
  solve_rows<T>(matrices, sides, upper, unit, rest, rest_end, place);
}

// The matrices of `t` for each of a broadcast batch, in one dimension.
Tensor in_one_batch(const Tensor& t, const Tensor& out) {
  const IntList batch = out.sizes().slice(0, out.sizes().size() - 2);
  DimVector sizes(batch);
  sizes.push_back(t.size(-2));
  sizes.push_back(t.size(-1));
  return aten::reshape(aten::expand(t, sizes), {checked_numel(batch), t.size(-2), t.size(-1)});
}

template <class T>
void solve_triangular_cuda(const Tensor& a, const Tensor& b, bool upper, bool left,
                           bool unitriangular, const Tensor& out) {
  if (out.numel() == 0) return;
  const Place place(out);
  // X A = B is A^T X^T = B^T.
  const Tensor matrices = in_one_batch(left ? a : aten::transpose(a, -2, -1), out);
  const Tensor given = in_one_batch(left ? b : aten::transpose(b, -2, -1), out);
  check<ErrorKind::Runtime>(
      given.size(0) * ((given.size(2) + kColumns - 1) / kColumns) <= INT32_MAX,
      OpName("linalg.solve_triangular"),
      "expected fewer than 2^31 blocks of columns on cuda, got B of "
      "shape ",
      b.sizes());
  const Tensor sides = empty_tensor(given.sizes(), given.dtype(), given.device());
  aten::copy_(sides, given);
  solve_rows<T>(matrices, sides, left ? upper : !upper, unitriangular, 0, matrices.size(1), place);
  const Tensor solved = left ? sides : aten::transpose(sides, -2, -1);
  aten::copy_(out, aten::reshape(solved, out.sizes()));
}

// ---- pivots ----

__device__ const char kUnpack[] = "lu_unpack";

// A block for each list of `k` exchanges of `rows` rows; the order is built in shared memory where
// it fits there.
__global__ void order_kernel(const int32_t* pivots, int64_t k, int64_t rows, int64_t* out,
                             bool shared, const char* op, FaultPlace fault) {
  extern __shared__ int64_t in_shared[];
  int64_t* const result = out + blockIdx.x * rows;
  int64_t* const order = shared ? in_shared : result;
  for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) order[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int64_t i = 0; i < k; ++i) {
      const int64_t other = pivots[blockIdx.x * k + i];
      if (other < 1 || other > rows) {
        record_fault(fault, kPivotOutOfRange, op, 1, rows, other);
        break;
      }
      const int64_t row = order[i];
      order[i] = order[other - 1];
      order[other - 1] = row;
    }
  }
  __syncthreads();
  if (shared) {
    for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) result[i] = order[i];
  }
}

template <class T>
void lu_permutation_cuda(const Tensor& pivots, int64_t rows, const Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor exchanges = aten::contiguous(pivots);
  const int64_t lists = out.numel() / rows;
  check<ErrorKind::Runtime>(lists <= INT32_MAX, OpName("lu_unpack"),
                            "expected fewer than 2^31 matrices on cuda, got ", lists);
  const Place place(out);
  constexpr int64_t kShared = 48 * 1024 / sizeof(int64_t);
  const bool shared = rows <= kShared;
  order_kernel<<<static_cast<unsigned>(lists), kBlock,
                 shared ? static_cast<size_t>(rows) * sizeof(int64_t) : 0, place.stream>>>(
      exchanges.data_as<T>(), pivots.size(-1), rows, out.data_as<int64_t>(), shared,
      on_device(kUnpack), faults().place(place.device));
  check_launched();
}

const auto triangular_registered = register_cuda<aten::ops::linalg_solve_triangular>(
    TypeList<float, double, std::complex<float>, std::complex<double>>(),
    []<class T>() { return &solve_triangular_cuda<T>; }, "solve_triangular_cuda");
const auto permutation_registered = register_cuda<aten::ops::_lu_permutation>(
    TypeList<int32_t>(), []<class T>() { return &lu_permutation_cuda<T>; }, "lu_permutation_cuda");

}  // namespace
}  // namespace treadle::cuda
