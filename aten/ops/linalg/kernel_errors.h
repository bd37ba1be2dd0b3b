// The errors of linear algebra kernels on every device: a refused decomposition, one that does not
// converge, or one that does not suit a solution.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/error.h"

namespace treadle {

[[noreturn]] inline void fail_not_finite(const char* op, int64_t batch_index) {
  fail<ErrorKind::LinAlg>(OpName(op),
                          "expected matrices without NaN and infinity, got one at batch index ",
                          batch_index);
}

// `left` is the number of values that remained when the iteration gave up.
[[noreturn]] inline void fail_not_converged(const char* op, int64_t left, int64_t batch_index) {
  fail<ErrorKind::LinAlg>(OpName(op), "expected the iteration to converge, got ", left,
                          " values without convergence at batch index ", batch_index);
}

[[noreturn]] inline void fail_sides_not_finite(int64_t batch_index) {
  fail<ErrorKind::LinAlg>(OpName("linalg.lstsq"),
                          "expected A and B without NaN and infinity, got one at batch index ",
                          batch_index);
}

[[noreturn]] inline void fail_rank(int64_t batch_index) {
  fail<ErrorKind::LinAlg>(OpName("linalg.lstsq"),
                          "expected a matrix of full rank, or whose singular values converge, got "
                          "neither at batch index ",
                          batch_index);
}

// Whether LAPACK may use these pivots: they are rows of the matrix, and negative ones come in equal
// pairs.
inline bool sound_pivots(const int* pivots, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = pivots[i];
    if (row == 0 || row > n || row < -n) return false;
    if (row > 0) continue;
    if (i + 1 >= n || pivots[i + 1] != pivots[i]) return false;
    ++i;
  }
  return true;
}
[[noreturn]] inline void fail_pivots(int64_t matrix) {
  fail<ErrorKind::Value>(OpName("linalg.ldl_solve"),
                         "expected pivots made by linalg.ldl_factor, got others for matrix ",
                         matrix);
}

}  // namespace treadle
