// Sums, conversions and permutations that restore the shape and dtype of a gradient's tensor.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/views/gradients.h"

#include "aten/ops/permute.h"
#include "aten/ops/real.h"
#include "aten/ops/reshape.h"
#include "aten/ops/sum.h"
#include "aten/ops/to.h"

namespace treadle::autograd {

Tensor sum_to(const Tensor& grad, IntList sizes) {
  if (!grad.defined() || grad.sizes() == sizes) return grad;
  const IntList have = grad.sizes();
  const size_t extra = have.size() - sizes.size();
  DimVector dims;
  for (size_t i = 0; i < have.size(); ++i) {
    if (i < extra || (sizes[i - extra] == 1 && have[i] != 1))
      dims.push_back(static_cast<int64_t>(i));
  }
  Tensor sum = dims.empty() ? grad : aten::sum(grad, OptionalIntList(dims), true);
  return extra > 0 ? aten::reshape(sum, sizes) : sum;
}

Tensor to_dtype(const Tensor& grad, ScalarType dtype) {
  if (!grad.defined() || grad.dtype() == dtype) return grad;
  const Tensor real = grad.is_complex() && !is_complex(dtype) ? aten::real(grad) : grad;
  return real.dtype() == dtype ? real : aten::to(real, dtype);
}

Tensor reduce_to(const Tensor& grad, IntList sizes, ScalarType dtype) {
  return to_dtype(sum_to(grad, sizes), dtype);
}

Tensor copy_backward(const Tensor& grad, IntList sizes, ScalarType dtype, Device device) {
  const Tensor fitted = reduce_to(grad, sizes, dtype);
  return !fitted.defined() || fitted.device() == device ? fitted : aten::to(fitted, device, dtype);
}

Tensor permute_backward(const Tensor& grad, IntList dims) {
  const auto rank = static_cast<int64_t>(dims.size());
  DimVector inverse(dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    inverse[dims[i] < 0 ? dims[i] + rank : dims[i]] = static_cast<int64_t>(i);
  return aten::permute(grad, inverse);
}

}  // namespace treadle::autograd
