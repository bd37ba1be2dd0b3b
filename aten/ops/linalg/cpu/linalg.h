// Common parts of the kernels of linear algebra: the distribution of a batch of matrices over
// threads, and the conversion between rows (tensors) and columns (LAPACK).
//
//   for_each_matrix(batch, work_of_one, [&](int64_t begin, int64_t end) {
//     lapack::Work<T> work;
//     for (int64_t i = begin; i < end; ++i) ...
//   });
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <climits>
#include <cmath>
#include <vector>

#include "aten/backend/cpu/lapack.h"
#include "aten/backend/cpu/transpose.h"
#include "aten/backend/cpu/work_space.h"
#include "aten/ops/clone.h"
#include "aten/ops/contiguous.h"
#include "core/tensor/tensor.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {

// Rows, columns and number of the matrices in the last two dimensions.
struct MatrixBatch {
  int64_t rows, columns, count;
  explicit MatrixBatch(const Tensor& t) : rows(t.size(-2)), columns(t.size(-1)), count(1) {
    for (size_t d = 0; d + 2 < t.sizes().size(); ++d) count *= t.sizes()[d];
  }
  int64_t numel() const { return rows * columns; }
};

// LAPACK counts in `int`.
inline int lapack_size(int64_t n) {
  check<ErrorKind::Runtime>(n <= INT_MAX, OpName("linalg"),
                            "expected every dimension of a matrix below 2^31, got ", n);
  return static_cast<int>(n);
}

// A leading dimension is at least 1, even for an empty matrix.
inline int leading(int64_t n) { return std::max(1, lapack_size(n)); }

// Distributes `count` matrices over threads, small ones several at a time. Libraries run on one
// thread.
template <class F>
void for_each_matrix(int64_t count, double work, F&& f) {
  const int64_t grain = work >= 65536 ? 1 : static_cast<int64_t>(65536 / std::max(1.0, work));
  parallel_for(count, grain,
               [&](int64_t begin, int64_t end) { single_threaded([&] { f(begin, end); }); });
}

inline double cube(int64_t n) { return static_cast<double>(n) * n * n; }

// A grain of rows for loops that copy them.
inline int64_t rows_of_copy(int64_t columns) {
  return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, columns));
}

// to[j * ldto + i] = from[i * ldfrom + j] for i < rows, j < columns.
template <class T>
void transpose_copy(const T* from, int64_t rows, int64_t columns, int64_t ldfrom, T* to,
                    int64_t ldto) {
  constexpr int64_t kSmall = 64, kItem = sizeof(T);  // small matrices are not worth the call
  if (rows * columns > kSmall) {
    const TransposedPlane plane{columns, rows, ldto * kItem, ldfrom * kItem, kItem};
    const int64_t band = transpose_band(kItem), grain = rows_of_copy(rows) + band - 1;
    return parallel_for(columns, grain / band * band, [&](int64_t begin, int64_t end) {
      transpose_rows(plane, reinterpret_cast<char*>(to), reinterpret_cast<const char*>(from), begin,
                     end);
    });
  }
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) to[j * ldto + i] = from[i * ldfrom + j];
}

// A contiguous copy that no other code holds. LAPACK may write anywhere for values that are not
// finite. So values that were found finite must stay so, whatever other threads write.
inline Tensor own_matrices(const Tensor& t) {
  const Tensor result = aten::contiguous(t);
  return result.is_same(t) ? aten::clone(t, MemoryFormat::Contiguous) : result;
}

template <class T>
bool all_finite(const T* values, int64_t count) {
  using R = real_type<T>;
  constexpr int64_t kGrain = 1 << 16, kLanes = 16;  // sums that do not wait for each other
  const R* const parts = reinterpret_cast<const R*>(values);
  std::atomic<bool> finite{true};
  parallel_for(count * (sizeof(T) / sizeof(R)), kGrain, [&](int64_t begin, int64_t end) {
    // A sum of products with 0 is 0 unless one of the factors is not finite.
    R sums[kLanes] = {};
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (int64_t l = 0; l < kLanes; ++l) sums[l] += parts[i + l] * R(0);
    }
    for (; i < end; ++i) sums[0] += parts[i] * R(0);
    for (int64_t l = 1; l < kLanes; ++l) sums[0] += sums[l];
    if (!(sums[0] == R(0))) finite.store(false, std::memory_order_relaxed);
  });
  return finite.load(std::memory_order_relaxed);
}

template <class T>
void copy_values(const T* from, int64_t count, T* to) {
  parallel_for(count, 32768, [&](int64_t begin, int64_t end) {
    std::copy_n(from + begin, end - begin, to + begin);
  });
}

// The square matrix `to` gets one triangle of `from`, which may be the same, and zeros elsewhere.
template <class T>
void copy_triangle(const T* from, int64_t n, bool upper, T* to) {
  parallel_for(n, rows_of_copy(n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = upper ? i : 0, last = upper ? n : i + 1;
      T* const row = to + i * n;
      std::fill_n(row, first, T(0));
      if (to != from) std::copy_n(from + i * n + first, last - first, row + first);
      std::fill_n(row + last, n - last, T(0));
    }
  });
}

template <class T>
T quiet_nan() {
  return T(std::numeric_limits<real_type<T>>::quiet_NaN());
}

inline float conjugate(float v) { return v; }
inline double conjugate(double v) { return v; }
template <class R>
std::complex<R> conjugate(std::complex<R> v) {
  return std::conj(v);
}

}  // namespace treadle::cpu
