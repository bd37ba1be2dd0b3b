// LU factorisations of many small matrices at once, each in the shared memory of a block: cuSOLVER
// takes them one after the other.
#pragma once

#include "core/tensor.h"

namespace treadle::cuda {

// Whether `count` matrices of this size are better factored so.
bool suits_small_lu(int64_t count, int64_t rows, int64_t columns, int64_t item);

// Contiguous matrices of finite numbers, as LAPACK's getrf has them: pivots from 1, the largest of
// a column by |re| + |im|, the first of those; info is the number of the first pivot that is zero.
// T is float, double or a complex number of them.
template <class T>
void small_lu(const Tensor& matrices, const Tensor& lu, const Tensor& pivots, const Tensor& info);

}  // namespace treadle::cuda
