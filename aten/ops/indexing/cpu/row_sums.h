// Sums of a few rows of a table, by vectors.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::simd {

// sum[k] = rows[0][k] * factors[0] + rows[1][k] * factors[1] + ..., added in this order. Null
// `factors` are ones. `sum` does not overlap the rows. If `total` is not null, it is added to, and
// `sum` is not written.
template <class T>
using SumRows = void (*)(const T* const* rows, const T* factors, int64_t count, int64_t width,
                         T* sum, double* total);
// That of the machine's target, for float or double.
template <class T>
SumRows<T> sum_rows();

}  // namespace treadle::simd
