// Factors of many small matrices at once, each in the shared memory of a block. cuSOLVER would
// factor them one after the other. T is float, double or a complex number of them.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::cuda {

// Whether this method is faster for `count` matrices of this size.
bool suits_small_factors(int64_t count, int64_t rows, int64_t columns, int64_t item);

// Contiguous matrices of finite numbers, as in LAPACK's getrf.
template <class T>
void small_lu(const Tensor& matrices, const Tensor& lu, const Tensor& pivots, const Tensor& info);

// Matrices by columns, `stride` elements apart, as in LAPACK's geqrf and orgqr, in place. The
// factors are contiguous.
template <class T>
void small_reflect(int64_t rows, int64_t columns, int64_t count, int64_t stride,
                   const Tensor& matrices, const Tensor& tau);
template <class T>
void small_product(int64_t rows, int64_t columns, int64_t k, int64_t count, int64_t stride,
                   const Tensor& matrices, const Tensor& tau);

}  // namespace treadle::cuda
