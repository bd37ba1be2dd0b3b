// Factors of one small matrix by `threads` threads that share its memory. This thread has the
// number `thread`; `meet` is a barrier between them. With one thread it is the plain algorithm,
// which the tests run.
//
// Each thread computes what a step needs of its column itself, so no values pass between threads.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

namespace treadle::cuda {

// A barrier of the threads of a block. On the host there is only one thread.
struct BlockMeets {
  constexpr void operator()() const {
#if defined(__CUDA_ARCH__) || defined(TREADLE_EMULATED)
    __syncthreads();
#endif
  }
};

template <class N>
concept ComplexNumber = requires(const N& v) {
  v.imag();
};
template <class N>
struct RealOf {
  using type = N;
};
template <ComplexNumber N>
struct RealOf<N> {
  using type = typename N::value_type;
};
template <class N>
using Real = typename RealOf<N>::type;

template <class N>
constexpr Real<N> real_part(const N& v) {
  if constexpr (ComplexNumber<N>)
    return v.real();
  else
    return v;
}
template <class N>
constexpr Real<N> imaginary_part(const N& v) {
  if constexpr (ComplexNumber<N>)
    return v.imag();
  else
    return 0;
}
template <class N>
constexpr N conjugated(const N& v) {
  if constexpr (ComplexNumber<N>)
    return N(v.real(), -v.imag());
  else
    return v;
}
template <class N>
constexpr N number(Real<N> re, Real<N> im) {
  if constexpr (ComplexNumber<N>)
    return N(re, im);
  else
    return re;
}
// |re| + |im|, by which LAPACK compares complex numbers.
template <class N>
constexpr Real<N> extent(const N& v) {
  const Real<N> re = real_part(v), im = imaginary_part(v);
  return (re < 0 ? -re : re) + (im < 0 ? -im : im);
}

// LU of a matrix (rows, columns) by rows, in the form of LAPACK's getrf: pivots from 1, each the
// first of the largest in its column. Returns the number of the first zero pivot, or 0.
template <class N>
constexpr int factor_lu(N* matrix, int rows, int columns, int32_t* pivots, int thread, int threads,
                        const BlockMeets& meet) {
  int failed = 0;
  const int steps = rows < columns ? rows : columns;
  for (int j = 0; j < steps; ++j) {
    int other = j;
    for (int i = j + 1; i < rows; ++i)
      if (extent(matrix[i * columns + j]) > extent(matrix[other * columns + j])) other = i;
    const N head = matrix[other * columns + j];
    if (thread == 0) pivots[j] = other + 1;
    meet();                   // all have read the column
    if (extent(head) == 0) {  // so are all below, and nothing changes
      if (failed == 0) failed = j + 1;
      continue;
    }
    if (other != j) {
      for (int c = thread; c < columns; c += threads) {
        const N kept = matrix[j * columns + c];
        matrix[j * columns + c] = matrix[other * columns + c];
        matrix[other * columns + c] = kept;
      }
      meet();
    }
    for (int i = j + 1 + thread; i < rows; i += threads) matrix[i * columns + j] /= head;
    meet();
    const int width = columns - j - 1;
    for (int i = thread; i < (rows - j - 1) * width; i += threads) {
      const int row = j + 1 + i / width, column = j + 1 + i % width;
      matrix[row * columns + column] -= matrix[row * columns + j] * matrix[j * columns + column];
    }
    meet();
  }
  return failed;
}

// The reflectors of a matrix (rows, columns) by columns, in the form of LAPACK's geqrf: R on and
// above the diagonal, vectors below it, whose first element is 1, and their factors in `tau`.
template <class N>
constexpr void reflect_columns(N* matrix, int rows, int columns, N* tau, int thread, int threads,
                               const BlockMeets& meet) {
  using R = Real<N>;
  const int steps = rows < columns ? rows : columns;
  for (int j = 0; j < steps; ++j) {
    N* const own = matrix + static_cast<int64_t>(j) * rows;
    const N alpha = own[j];
    // The norm of the part below, relative to its largest element, so that squares neither overflow
    // nor vanish.
    R largest = 0, squares = 0;
    for (int i = j + 1; i < rows; ++i)
      largest = extent(own[i]) > largest ? extent(own[i]) : largest;
    for (int i = j + 1; i < rows && largest > 0; ++i) {
      const R re = real_part(own[i]) / largest, im = imaginary_part(own[i]) / largest;
      squares += re * re + im * im;
    }
    const R below = largest * std::sqrt(squares);
    if (below == 0 && imaginary_part(alpha) == 0) {
      if (thread == 0) tau[j] = N(0);
      meet();
      continue;
    }
    const R length = std::hypot(std::hypot(real_part(alpha), imaginary_part(alpha)), below);
    const R beta = real_part(alpha) >= 0 ? -length : length;
    const N factor = number<N>((beta - real_part(alpha)) / beta, -imaginary_part(alpha) / beta);
    const N scale = N(1) / (alpha - N(beta));
    meet();  // all threads have read the column
    for (int i = j + 1 + thread; i < rows; i += threads) own[i] *= scale;
    if (thread == 0) {
      own[j] = N(beta);
      tau[j] = factor;
    }
    meet();
    for (int c = j + 1 + thread; c < columns; c += threads) {
      N* const other = matrix + static_cast<int64_t>(c) * rows;
      N sum = other[j];
      for (int i = j + 1; i < rows; ++i) sum += conjugated(own[i]) * other[i];
      sum *= conjugated(factor);
      other[j] -= sum;
      for (int i = j + 1; i < rows; ++i) other[i] -= own[i] * sum;
    }
    meet();
  }
}

// Column `column` of the product of the first `count` reflectors, into `out`.
template <class N>
constexpr void product_column(const N* reflectors, const N* tau, int rows, int count, int column,
                              N* out) {
  for (int i = 0; i < rows; ++i) out[i] = N(i == column ? 1 : 0);
  for (int j = count - 1; j >= 0; --j) {
    const N* const own = reflectors + static_cast<int64_t>(j) * rows;
    N sum = out[j];
    for (int i = j + 1; i < rows; ++i) sum += conjugated(own[i]) * out[i];
    sum *= tau[j];
    out[j] -= sum;
    for (int i = j + 1; i < rows; ++i) out[i] -= own[i] * sum;
  }
}

}  // namespace treadle::cuda
