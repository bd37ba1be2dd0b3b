// Text of programs: preludes for a dtype that is computed in, and how elements are read and
// written.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "treadle/expression_source.hpp"

namespace treadle_opencl {

// The dialect of generated kernels: integer divisions take the place where they mark a division by
// zero as a last argument.
class Dialect final : public treadle::plugin::ExpressionDialect {
 public:
  std::string call(const char* function, treadle_dtype compute,
                   const std::vector<std::string>& arguments) const override;
};

// Whether the prelude of the dtype has the function, and whether it is one that can fail.
bool has_function(const std::string& name, treadle_dtype compute);
bool can_fail(const std::string& name, treadle_dtype compute);

// "float": elements of the dtype in memory ("ushort" for 16-bit floats).
std::string storage_type(treadle_dtype dtype);
// "float": values that are computed with.
std::string value_type(treadle_dtype compute);
// A value of `from` as one of `to`; of 16-bit floats, what is in memory.
std::string converted(const std::string& text, treadle_dtype from, treadle_dtype to);
// A truth value as an element of `to`.
std::string converted_truth(const std::string& text, treadle_dtype to);

// The head of a program that computes in `compute` (not a 16-bit float): T is the value type and
// FN(name) a function; ADD SUB MUL of two values.
std::string prelude(treadle_dtype compute);
// The same for kernels over elements of one dtype: S is its storage type, LOAD(pointer, i) and
// STORE(pointer, i, value) convert between S and T.
std::string element_prelude(treadle_dtype dtype);

// The dtype that sums and products of elements are computed in.
inline treadle_dtype compute_of(treadle_dtype dtype) {
  return treadle::plugin::compute_dtype(dtype);
}

}  // namespace treadle_opencl
