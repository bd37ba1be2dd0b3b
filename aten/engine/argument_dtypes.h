// The checks of dtypes and devices of all tensor arguments, which the generator inserts before a
// kernel runs.
//
// One dtype selects the kernel. The entry declares the dtypes of every other tensor
// (`argument_dtypes:`), so a kernel may read each one as its declared type.
//
//   contract::require_one_dtype("mm", "self", self.dtype(), "mat2", mat2);
//   contract::require_dtype("gather", "index", index, 0x180u);
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "aten/engine/contract.h"

namespace treadle::contract {

// A set of dtypes: a bit for each.
constexpr uint32_t dtype_bit(ScalarType dtype) {
  return static_cast<uint32_t>(uint64_t{1} << static_cast<uint32_t>(dtype));
}
// Every dtype, for an argument that is left out.
inline uint32_t dtype_bit(const std::optional<ScalarType>& dtype) {
  return dtype ? dtype_bit(*dtype) : ~0u;
}
// The dtype in which sums of such elements are kept.
constexpr uint32_t sums_bit(ScalarType dtype) {
  const bool narrow = dtype == ScalarType::Float16 || dtype == ScalarType::BFloat16;
  return dtype_bit(narrow ? ScalarType::Float32 : dtype);
}

// RuntimeError "gather: expected index of dtype int64 or int32, got float32".
[[noreturn]] void wrong_argument_dtype(const char* op, const std::string& argument,
                                       uint32_t allowed, ScalarType got);
// RuntimeError "mm: expected self and mat2 of one dtype, got float32 and int8".
[[noreturn]] void two_dtypes(const char* op, const char* first, ScalarType expected,
                             const char* argument, ScalarType got);

// An undefined tensor has no dtype, so none that is wrong.
inline void require_dtype(const char* op, const char* argument, const Tensor& t, uint32_t allowed) {
  if (t.defined() && !has_dtype(allowed, t.dtype())) [[unlikely]]
    wrong_argument_dtype(op, argument, allowed, t.dtype());
}
void require_dtype(const char* op, const char* argument, TensorList list, uint32_t allowed);
inline void require_one_dtype(const char* op, const char* first, ScalarType expected,
                              const char* argument, const Tensor& t) {
  if (t.defined() && t.dtype() != expected) [[unlikely]]
    two_dtypes(op, first, expected, argument, t.dtype());
}

// RuntimeError unless each tensor of the list is on `device`; one element on the CPU is taken for a
// number.
void require_device(const char* op, const char* argument, TensorList list, Device device);

// RuntimeError for an empty list, whose first tensor would say what kernel serves the call.
inline void require_first(const char* op, const char* argument, TensorList list) {
  check<ErrorKind::Runtime>(!list.empty() && list[0].defined(), OpName(op), "expected a tensor in ",
                            argument, ", got none");
}

// The addresses of tensors and of all that lists hold, for Output.
inline void add_input(std::vector<const Tensor*>& inputs, const Tensor& t) { inputs.push_back(&t); }
inline void add_input(std::vector<const Tensor*>& inputs, TensorList list) {
  for (const Tensor& t : list) inputs.push_back(&t);
}
template <class... T>
std::vector<const Tensor*> inputs_of(const T&... arguments) {
  std::vector<const Tensor*> inputs;
  (add_input(inputs, arguments), ...);
  return inputs;
}

}  // namespace treadle::contract
