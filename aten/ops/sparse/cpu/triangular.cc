// Systems of equations with a triangular compressed matrix. A column of right sides is computed by
// one thread, row after row, so the bits do not depend on the number of threads.
//
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "aten/backend/cpu/long_sums.h"
#include "aten/ops/_csr_triangular_solve.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/sparse/cpu/compressed_rows.h"

namespace treadle::cpu {
namespace {

template <class T>
struct System {
  const CompressedRows::Copy& matrix;
  const T* values;
  int64_t rows, width;  // of the right sides
  bool upper, unitriangular;
};

// The columns of X from `first` up to `last`. Entries on the other side of the diagonal are not
// read, nor is a diagonal of ones.
template <class T>
void solve_columns(const System<T>& of, const T* b, int64_t first, int64_t last, T* x) {
  using S = wide_type<compute_type<T>>;
  std::vector<S> sums(static_cast<size_t>(last - first));
  for (int64_t step = 0; step < of.rows; ++step) {
    const int64_t r = of.upper ? of.rows - 1 - step : step;
    for (int64_t j = first; j < last; ++j) sums[j - first] = static_cast<S>(b[r * of.width + j]);
    S diagonal(0);
    for (int64_t i = of.matrix.offsets[r]; i < of.matrix.offsets[r + 1]; ++i) {
      const int64_t c = of.matrix.columns[i];
      const S factor = static_cast<S>(of.values[i]);
      if (c == r) {
        diagonal = factor;
      } else if ((c > r) == of.upper) {
        const T* const known = x + c * of.width;
        for (int64_t j = first; j < last; ++j) sums[j - first] -= factor * static_cast<S>(known[j]);
      }
    }
    T* const to = x + r * of.width;
    for (int64_t j = first; j < last; ++j) {
      const S sum = sums[j - first];
      to[j] = static_cast<T>(of.unitriangular ? sum : sum / diagonal);
    }
  }
}

template <class T>
void csr_triangular_solve_cpu(const Tensor& values, const Tensor& crow, const Tensor& col,
                              const Tensor& other, bool upper, bool unitriangular,
                              const Tensor& out) {
  const Tensor factors = aten::contiguous(values), b = aten::contiguous(other);
  const Tensor offsets = aten::contiguous(crow), columns = aten::contiguous(col);
  const int64_t rows = out.size(0), width = out.size(1);
  const CompressedRows matrix("triangular_solve", offsets, columns, rows);
  const CompressedRows::Copy all = matrix.copy(rows);
  const System<T> system{all, factors.data_as<T>(), rows, width, upper, unitriangular};
  parallel_for(width, grain_for(rows + columns.numel()), [&](int64_t first, int64_t last) {
    solve_columns(system, b.data_as<T>(), first, last, out.data_as<T>());
  });
}

const auto registered = register_kernels<aten::ops::_csr_triangular_solve, DeviceType::CPU>(
    []<class T>() { return &csr_triangular_solve_cpu<T>; }, "csr_triangular_solve_cpu");

}  // namespace
}  // namespace treadle::cpu
