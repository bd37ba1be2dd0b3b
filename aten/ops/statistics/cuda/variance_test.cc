// var and std of the CUDA backend, compared with those of the CPU.
//
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "aten/backend/cuda/jit/kernel_calls.h"
#include "aten/ops/allclose.h"
#include "aten/ops/permute.h"
#include "aten/ops/randn.h"
#include "aten/ops/std.h"
#include "aten/ops/to.h"
#include "aten/ops/var.h"

namespace treadle::cuda {
namespace {

constexpr ScalarType kDtypes[] = {ScalarType::Float16, ScalarType::Float32, ScalarType::Float64,
                                  ScalarType::Complex64};

void compare(const Tensor& t, OptionalIntList dim, const std::optional<Scalar>& correction,
             bool keepdim) {
  const double tolerance = t.dtype() == ScalarType::Float16 ? 2e-3 : 1e-5;
  const Tensor var = aten::var(t, dim, correction, keepdim),
               std = aten::std(t, dim, correction, keepdim);
  const Tensor found_var = empty_cpu(var.sizes(), var.dtype()),
               found_std = empty_cpu(std.sizes(), std.dtype());
  call_kernel<aten::ops::var_correction>(t.dtype(), t, dim, correction, keepdim, found_var);
  call_kernel<aten::ops::std_correction>(t.dtype(), t, dim, correction, keepdim, found_std);
  EXPECT_TRUE(aten::allclose(found_var, var, tolerance, tolerance, true)) << name_of(t.dtype());
  EXPECT_TRUE(aten::allclose(found_std, std, tolerance, tolerance, true)) << name_of(t.dtype());
}

TEST(Variance, IsTheCpus) {
  for (const ScalarType dtype : kDtypes) {
    const ScalarType made = is_complex(dtype) ? dtype : ScalarType::Float32;
    for (const DimVector& sizes : {DimVector{4, 3, 5}, DimVector{}, DimVector{2, 0, 3}}) {
      const Tensor t = aten::to(aten::randn(sizes, made), dtype);
      for (const std::optional<Scalar>& correction :
           {std::optional<Scalar>(), std::optional<Scalar>(0), std::optional<Scalar>(4.5)}) {
        for (const bool keepdim : {false, true}) {
          compare(t, std::nullopt, correction, keepdim);
          if (t.dim() == 0) continue;
          compare(t, IntList({1}), correction, keepdim);
          compare(t, IntList({-1, 0}), correction, keepdim);
          compare(aten::permute(t, {2, 0, 1}), IntList({0}), correction, keepdim);
        }
      }
    }
  }
}

}  // namespace
}  // namespace treadle::cuda
