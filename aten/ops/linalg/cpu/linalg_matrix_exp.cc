// matrix_exp, by the method of aten/ops/linalg/matrix_exp_terms.h. Each matrix of a batch has its
// own scale.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/linalg_matrix_exp.h"
#include "aten/backend/cpu/gemm.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/linalg/cpu/linalg.h"
#include "aten/ops/linalg/matrix_exp_terms.h"

namespace treadle::cpu {
namespace {

// The exponential of one matrix. The names are those of the paper.
template <class T>
class Exponential {
 public:
  explicit Exponential(int64_t n) : n_(n), size_(n * n), pivots_(n) {
    for (std::vector<T>* m : {&a_, &a2_, &a4_, &a6_, &u_, &v_, &w_}) m->resize(size_);
  }

  void operator()(const T* from, T* to) {
    using R = real_type<T>;
    if (!all_finite(from, size_)) {
      std::fill_n(to, size_, quiet_nan<T>());
      return;
    }
    R norm(0);  // the largest sum of a column
    for (int64_t j = 0; j < n_; ++j) {
      R sum(0);
      for (int64_t i = 0; i < n_; ++i) sum += std::abs(from[i * n_ + j]);
      norm = std::max(norm, sum);
    }
    int squarings = matrix_exp::squarings(norm);
    const R half = matrix_exp::first_factor<R>(squarings),
            rest = matrix_exp::second_factor<R>(squarings);
    for (int64_t i = 0; i < size_; ++i) a_[i] = from[i] * half * rest;
    approximate(to);
    for (; squarings > 0; --squarings) {
      std::copy_n(to, size_, w_.data());
      multiply(w_, w_, to);
    }
  }

 private:
  void multiply(const std::vector<T>& x, const std::vector<T>& y, T* out) {
    gemm<T>({x.data(), n_, n_, n_, 1}, {y.data(), n_, n_, n_, 1}, out, n_, T(1), T(0));
  }
  // out = c6 a6 + c4 a4 + c2 a2 + c0 I
  void combine(double c6, double c4, double c2, double c0, std::vector<T>& out) {
    using R = real_type<T>;
    for (int64_t i = 0; i < size_; ++i)
      out[i] =
          a6_[i] * static_cast<R>(c6) + a4_[i] * static_cast<R>(c4) + a2_[i] * static_cast<R>(c2);
    for (int64_t i = 0; i < n_; ++i) out[i * n_ + i] += static_cast<R>(c0);
  }

  void approximate(T* to) {
    double c[14];
    for (int i = 0; i < 14; ++i) c[i] = matrix_exp::coefficient(i);
    multiply(a_, a_, a2_.data());
    multiply(a2_, a2_, a4_.data());
    multiply(a4_, a2_, a6_.data());
    // u = a (a6 (c13 a6 + c11 a4 + c9 a2) + c7 a6 + c5 a4 + c3 a2 + c1 I)
    combine(c[13], c[11], c[9], 0, w_);
    multiply(a6_, w_, v_.data());
    combine(c[7], c[5], c[3], c[1], w_);
    for (int64_t i = 0; i < size_; ++i) w_[i] += v_[i];
    multiply(a_, w_, u_.data());
    // v = a6 (c12 a6 + c10 a4 + c8 a2) + c6 a6 + c4 a4 + c2 a2 + c0 I
    combine(c[12], c[10], c[8], 0, w_);
    multiply(a6_, w_, v_.data());
    combine(c[6], c[4], c[2], c[0], w_);
    // (v - u) X = v + u. Both are polynomials in a, so they commute and X (v - u) = v + u, which
    // row-major matrices say in the columns of LAPACK.
    for (int64_t i = 0; i < size_; ++i) {
      const T v = w_[i] + v_[i];
      to[i] = v + u_[i];
      w_[i] = v - u_[i];
    }
    const int n = lapack_size(n_);
    if (lapack::getrf(n, n, w_.data(), n, pivots_.data()) == 0)
      lapack::getrs('N', n, n, w_.data(), n, pivots_.data(), to, n);
    else
      std::fill_n(to, size_, quiet_nan<T>());
  }

  int64_t n_, size_;
  std::vector<T> a_, a2_, a4_, a6_, u_, v_, w_;
  std::vector<int> pivots_;
};

template <class T>
void matrix_exp_cpu(const Tensor& self, const Tensor& out) {
  const Tensor input = own_matrices(self);
  const MatrixBatch b(input);
  if (b.rows == 0) return;
  for_each_matrix(b.count, 16 * cube(b.rows), [&](int64_t begin, int64_t end) {
    Exponential<T> exponential(b.rows);
    for (int64_t i = begin; i < end; ++i)
      exponential(input.data_as<T>() + i * b.numel(), out.data_as<T>() + i * b.numel());
  });
}

const auto matrix_exp_registered = register_kernels<aten::ops::linalg_matrix_exp, DeviceType::CPU>(
    []<class T>() { return &matrix_exp_cpu<T>; }, "matrix_exp_cpu");

}  // namespace
}  // namespace treadle::cpu
