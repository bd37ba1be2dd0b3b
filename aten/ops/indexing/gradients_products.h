// Derivatives of products whose factors are scattered over a tensor.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::autograd {

// For each product the number of zeros among its factors, their sum, and the product of the others.
// The sum is 0 too, but not to autograd: where one factor is 0, it stands for it.
struct ProductParts {
  Tensor zeros, sum, product;
};

// The product of all factors but `factor`, which has the shape of the parts. Its first derivative
// is right at zeros too.
Tensor product_without(const Tensor& factor, const ProductParts& all);

}  // namespace treadle::autograd
