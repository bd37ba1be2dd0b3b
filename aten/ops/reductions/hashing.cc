// hash_tensor: the exclusive or of the elements as 64-bit numbers.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/bitwise_xor.h"
#include "aten/ops/cat.h"
#include "aten/ops/hash_tensor.h"
#include "aten/ops/narrow.h"
#include "aten/ops/reshape.h"
#include "aten/ops/resolve_neg.h"
#include "aten/ops/squeeze.h"
#include "aten/ops/to.h"
#include "aten/ops/view.h"
#include "aten/ops/zeros.h"

namespace treadle::composite {
namespace {

// The exclusive or along `dim`, which keeps size 1: halves are laid over each other.
Tensor folded(Tensor bits, int64_t dim) {
  for (int64_t size = bits.size(dim); size > 1; size = bits.size(dim)) {
    const int64_t half = size / 2;
    Tensor over =
        aten::bitwise_xor(aten::narrow(bits, dim, 0, half), aten::narrow(bits, dim, half, half));
    if (size % 2 != 0) over = aten::cat({over, aten::narrow(bits, dim, size - 1, 1)}, dim);
    bits = over;
  }
  if (bits.size(dim) == 1) return bits;
  DimVector sizes(bits.sizes());
  sizes[static_cast<size_t>(dim)] = 1;
  return aten::zeros(sizes, bits.dtype(), std::nullopt, bits.device());
}

}  // namespace

Tensor hash_tensor(const Tensor& self, IntList dim, bool keepdim, int64_t /*mode*/) {
  const DimVector dims = wrap_dims("hash_tensor", dim, self.dim(), true);
  check<ErrorKind::Runtime>(self.numel() > 0 || !dim.empty(), OpName("hash_tensor"),
                            "expected a dim for a tensor without elements, got none");
  const NoGrad no_grad;
  Tensor bits =
      is_integral(self.dtype(), true)
          ? aten::to(self, ScalarType::Int64)
          : aten::view(aten::resolve_neg(aten::to(self, ScalarType::Float64)), ScalarType::Int64);
  for (int64_t d : dims) bits = folded(bits, d);
  if (!keepdim) bits = aten::squeeze(bits, IntList(dims));
  return aten::view(bits, ScalarType::UInt64);
}

}  // namespace treadle::composite
