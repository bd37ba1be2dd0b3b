// What kernels of linear algebra raise, on every device, where a decomposition is refused or does
// not converge.
#pragma once

#include "core/error.h"

namespace treadle {

[[noreturn]] inline void fail_not_finite(const char* op, int64_t batch_index) {
  fail<ErrorKind::LinAlg>(
      op, ": expected matrices without NaN and infinity, got one at batch index ", batch_index);
}

// `left` values were left over where the iteration gave up.
[[noreturn]] inline void fail_not_converged(const char* op, int64_t left, int64_t batch_index) {
  fail<ErrorKind::LinAlg>(op, ": expected the iteration to converge, got ", left,
                          " values without convergence at batch index ", batch_index);
}

[[noreturn]] inline void fail_sides_not_finite(int64_t batch_index) {
  fail<ErrorKind::LinAlg>(
      "linalg.lstsq: expected A and B without NaN and infinity, got one at batch index ",
      batch_index);
}

[[noreturn]] inline void fail_rank(int64_t batch_index) {
  fail<ErrorKind::LinAlg>(
      "linalg.lstsq: expected a matrix of full rank, or whose singular values converge, got "
      "neither at batch index ",
      batch_index);
}

}  // namespace treadle
