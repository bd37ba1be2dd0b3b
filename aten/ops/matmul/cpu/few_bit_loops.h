// Products with weights of few bits, on one thread: the part of few_bit_products.cc that is
// compiled for each target.
//
// A weight is decoded where it is needed, so a product with few rows takes as long as reading the
// packed weights. The order of additions in an element depends on the length of the sum alone, so a
// row has the same bits in a batch of any size.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/base/scalar_type.h"

namespace treadle::simd {

// Note [Packed int4]
//
// Weights of 4 bits (n rows of k numbers from 0 to 15) are packed in blocks of 16 rows. A block is
// k / 8 units. A unit is 16 words of 32 bits, little endian, one for each row, with 8 numbers of
// that row, the first in the lowest bits. So a vector of words has one number of each of its rows
// in the same bits, and a block is read from its start to its end. Packed weights are the same on
// every machine.
inline constexpr int64_t kInt4Rows = 16, kInt4Terms = 8;
inline constexpr int64_t kInt4Unit = kInt4Rows * kInt4Terms / 2;  // bytes

// A row of the product is the sum over k of a[row, k] * ((q[j, k] - 8) * scale + zero), for rows j
// of the weights.
// S, the type of scales and zeros, is float or BFloat16.
template <class S>
struct Int4Product {
  const float* a;  // panels of `panel` rows, the last of the rest: element [k][row]
  int64_t rows, panel, terms;
  const uint8_t* weights;  // from the first block on
  int64_t blocks;
  const S* scales;  // scale and zero of each row, groups at a distance of `pitch`
  int64_t group, pitch;
  float* out;
  int64_t out_pitch;
};

// A row of the product is the sum over k of a[row, k] * q[j, k], times scales[j].
struct Int8Product {
  const float* a;  // contiguous
  int64_t rows, terms;
  const int8_t* weights;  // contiguous rows
  int64_t columns;        // of the product
  const float* scales;
  float* out;
  int64_t out_pitch;
};

struct FewBitLoops {
  int64_t few_rows;  // so many rows, at most, are multiplied while weights are decoded
  int64_t panel;     // the rows of a panel where there are more
  void (*int4)(const Int4Product<float>&);
  void (*int4_bfloat16)(const Int4Product<BFloat16>&);
  void (*int8)(const Int8Product&);
};

const FewBitLoops& few_bit_loops();

}  // namespace treadle::simd
