// Generated kernels of backends: a pointwise or reduce call as its expression and its operands. A
// backend makes a kernel from them (Backend::pointwise and reduce of core/device/backend.h).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "aten/engine/reduce.h"
#include "core/base/scalar.h"
#include "core/device/backend.h"
#include "core/tensor/tensor.h"

namespace treadle {

// The source of an expression. The texts live forever, and their addresses identify them. The names
// in the expression are those of the schema's arguments.
struct ExpressionSource {
  const char* name;        // "add"
  const char* schema;      // "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
  const char* expression;  // "self + alpha * other", or "init = 0; step = acc + x; ..."
};

// A part of a reduction's text: "acc + x" for "step" in "init = 0; step = acc + x; combine = a +
// b"; empty if it is missing.
std::string_view reduction_part(std::string_view text, std::string_view name);

struct GeneratedOperand {
  const Tensor* tensor;
  const int64_t* strides;  // in bytes, of the call's shape
  const char* name;
};

struct GeneratedNumber {
  const char* name;
  Scalar value;
};

inline constexpr size_t kMaxGeneratedOperands = 8, kMaxGeneratedNumbers = 16;

// Like PointwiseCall, but operands are tensors of the device, and 0-dim CPU tensors are numbers.
struct GeneratedPointwise {
  ExpressionSource source;
  Device device;
  IntList shape;
  int64_t numel = 0;
  ScalarType compute = ScalarType::Float32;
  GeneratedOperand out{};
  GeneratedOperand inputs[kMaxGeneratedOperands]{};
  size_t input_count = 0;
  GeneratedNumber numbers[kMaxGeneratedNumbers]{};
  size_t number_count = 0;
};

struct GeneratedReduce {
  ExpressionSource source;
  const ReduceCall& call;  // its pointers to data have no meaning
  const Tensor& out;
  const Tensor& in;
};

// The pointwise call of an operator with its tensors and numbers in the schema's order. Strides are
// in bytes, for the output, then for each input. False when no backend generates it.
bool run_generated(const ExpressionSource& source, const Tensor& out, const DimVector& out_strides,
                   ArrayRef<const Tensor*> inputs, const DimVector* input_strides,
                   ArrayRef<Scalar> numbers, IntList shape, ScalarType compute);
bool run_generated(const ExpressionSource& source, const ReduceCall& call, const Tensor& out,
                   const Tensor& in);
// out = self on one device, of any strides and dtypes.
bool convert_generated(const Tensor& out, const Tensor& self);

}  // namespace treadle
