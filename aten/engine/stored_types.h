// Types for storage only (is_stored() in core/base/scalar_type.h), also those that programs
// register: the meaning of their bits.
//
//   store(eighths, values);          // rounds float32 values to float8
//   Tensor wide = computed(eighths); // and back, exactly
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle {

// The integer of the same size: what moves elements moves these.
ScalarType carrier_type(ScalarType stored);

// Whether each element is a value: not several, and not one that needs a scale.
bool is_convertible(ScalarType stored);
// NotImplementedError for a type whose elements are several values, which nothing converts.
void require_convertible(ScalarType stored);

// The same memory as integers, and as `stored` again.
Tensor as_carriers(const Tensor& t);
Tensor from_carriers(const Tensor& t, ScalarType stored);

// The values of `t`, in a new contiguous tensor of computed_type() on the CPU.
// NotImplementedError for a type whose elements are several values.
Tensor computed(const Tensor& t);
// Writes `src`, of any dtype and a shape that broadcasts, rounded to the nearest value, of two the
// even one. A value that is too large becomes infinite; the largest number in float8_e4m3fn, and
// NaN in the other types without an infinity.
void store(const Tensor& dst, const Tensor& src);

// float4_e2m1fn_x2 has two numbers of 4 bits in a byte, the first in the lower half. They have a
// sign, two bits of exponent and one of mantissa: 0, 0.5, 1, 1.5, 2, 3, 4 and 6. The first function
// returns the value of one, the second the one nearest to a value, of two the even one. What is too
// large becomes 6, and so does NaN, since there are neither infinities nor NaN.
float float4_value(uint8_t bits);
uint8_t float4_bits(float value);

// A copy on the CPU, on a device or between the two.
void copy_anywhere(const Tensor& dst, const Tensor& src);

// A number as the bits of an element, and back.
Scalar encoded(const Scalar& value, ScalarType stored);
Scalar decoded(const Scalar& bits, ScalarType stored);

}  // namespace treadle
