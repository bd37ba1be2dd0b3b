// The steps by which a block factors a small matrix, compared with LAPACK's factors.
//
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <complex>

#include "aten/ops/_linalg_lu.h"
#include "aten/ops/allclose.h"
#include "aten/ops/clone.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/fill_.h"
#include "aten/ops/geqrf.h"
#include "aten/ops/linalg/cuda/small_factor_steps.h"
#include "aten/ops/linalg_householder_product.h"
#include "aten/ops/mul.h"
#include "aten/ops/narrow.h"
#include "aten/ops/randn.h"
#include "aten/ops/select.h"
#include "aten/ops/transpose.h"

namespace treadle::cuda {
namespace {

bool same(const Tensor& a, const Tensor& b) { return aten::allclose(a, b, 1e-10, 1e-13); }

// Different shapes, also with columns of zeros, and numbers whose squares overflow.
template <class T, class F>
void for_matrices(F f) {
  for (int rows = 1; rows <= 6; ++rows) {
    for (int columns = 1; columns <= 6; ++columns) {
      const Tensor a = aten::randn({rows, columns}, scalar_type_of<T>);
      f(a, rows, columns);
      f(aten::mul(a, Scalar(1e200)), rows, columns);
      aten::fill_(aten::select(a, 1, columns / 2), 0);
      f(a, rows, columns);
    }
  }
}

template <class T>
void compare_lu() {
  for_matrices<T>([](const Tensor& a, int rows, int columns) {
    const auto [lu, pivots, info] = aten::_linalg_lu(a);
    const Tensor found = aten::clone(a);
    std::vector<int32_t> exchanges(static_cast<size_t>(std::min(rows, columns)));
    const int failed =
        factor_lu(found.data_as<T>(), rows, columns, exchanges.data(), 0, 1, BlockMeets());
    EXPECT_TRUE(same(found, lu));
    EXPECT_EQ(failed, *info.data_as<int>());
    for (size_t i = 0; i < exchanges.size(); ++i) EXPECT_EQ(exchanges[i], pivots.data_as<int>()[i]);
  });
}

template <class T>
void compare_reflectors() {
  for_matrices<T>([](const Tensor& a, int rows, int columns) {
    const auto [reflectors, tau] = aten::geqrf(a);
    const Tensor found = aten::clone(aten::contiguous(aten::transpose(a, 0, 1))),
                 factors = aten::clone(tau);
    aten::fill_(factors, 7);
    reflect_columns(found.data_as<T>(), rows, columns, factors.data_as<T>(), 0, 1, BlockMeets());
    EXPECT_TRUE(same(aten::transpose(found, 0, 1), reflectors));
    EXPECT_TRUE(same(factors, tau));
    if (rows < columns) return;
    for (int k = 0; k <= columns; ++k) {
      const Tensor product =
          aten::linalg_householder_product(reflectors, aten::narrow(tau, 0, 0, k));
      const Tensor out = empty_cpu({columns, rows}, a.dtype());
      for (int c = 0; c < columns; ++c)
        product_column(found.data_as<T>(), factors.data_as<T>(), rows, k, c,
                       out.data_as<T>() + c * rows);
      EXPECT_TRUE(same(aten::transpose(out, 0, 1), product));
    }
  });
}

TEST(SmallFactors, Lu) {
  compare_lu<double>();
  compare_lu<std::complex<double>>();
}

TEST(SmallFactors, Reflectors) {
  compare_reflectors<double>();
  compare_reflectors<std::complex<double>>();
}

}  // namespace
}  // namespace treadle::cuda
