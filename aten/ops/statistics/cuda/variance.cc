// var and std in two passes, the mean and then the squared distances from it, composed of generated
// reductions.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/registration.h"
#include "aten/ops/add.h"
#include "aten/ops/copy_.h"
#include "aten/ops/div.h"
#include "aten/ops/imag.h"
#include "aten/ops/mean.h"
#include "aten/ops/real.h"
#include "aten/ops/reshape.h"
#include "aten/ops/sqrt.h"
#include "aten/ops/square.h"
#include "aten/ops/std.h"
#include "aten/ops/sub.h"
#include "aten/ops/sum.h"
#include "aten/ops/to.h"
#include "aten/ops/var.h"

namespace treadle::cuda {
namespace {

template <class T>
void variance(const Tensor& self, OptionalIntList dim, const std::optional<Scalar>& correction,
              bool root, const Tensor& out) {
  if (out.numel() == 0) return;
  const DimVector dims = wrap_dims(root ? "std" : "var", dim, self.dim(), true);
  const OptionalIntList over{IntList(dims)};
  const Tensor wide = aten::to(self, scalar_type_of<compute_type<T>>);
  int64_t count = 1;
  for (const int64_t d : dims) count *= self.dim() ? self.size(d) : 1;
  const Tensor distance = aten::sub(wide, aten::mean(wide, over, true));
  const Tensor squares = is_complex_type<T> ? aten::add(aten::square(aten::real(distance)),
                                                        aten::square(aten::imag(distance)))
                                            : aten::square(distance);
  const double divisor =
      std::max(0.0, static_cast<double>(count) - (correction ? correction->to<double>() : 1.0));
  const Tensor value = aten::div(aten::sum(squares, over, true), Scalar(divisor));
  aten::copy_(out, aten::reshape(root ? aten::sqrt(value) : value, out.sizes()));
}

template <class T>
void var_cuda(const Tensor& self, OptionalIntList dim, const std::optional<Scalar>& correction,
              bool /*keepdim*/, const Tensor& out) {
  variance<T>(self, dim, correction, false, out);
}
template <class T>
void std_cuda(const Tensor& self, OptionalIntList dim, const std::optional<Scalar>& correction,
              bool /*keepdim*/, const Tensor& out) {
  variance<T>(self, dim, correction, true, out);
}

const auto var_registered = register_cuda<aten::ops::var_correction>(
    DeclaredTypes<aten::ops::var_correction>(), []<class T>() { return &var_cuda<T>; }, "var_cuda");
const auto std_registered = register_cuda<aten::ops::std_correction>(
    DeclaredTypes<aten::ops::std_correction>(), []<class T>() { return &std_cuda<T>; }, "std_cuda");

}  // namespace
}  // namespace treadle::cuda
