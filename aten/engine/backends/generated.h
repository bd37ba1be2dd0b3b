// Generated kernels of backends: a pointwise or reduce call as its expression and its operands. A
// backend makes a kernel from them (Backend::pointwise and reduce of core/device/backend.h).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/reduce.h"
#include "core/base/scalar.h"
#include "core/device/backend.h"
#include "core/dispatch/expression.h"
#include "core/tensor/tensor.h"

namespace treadle {

struct GeneratedOperand {
  const Tensor* tensor;
  const int64_t* strides;  // in bytes, of the call's shape
  const char* name;        // as the expression has it; lives for ever, as those of numbers do
};

struct GeneratedNumber {
  const char* name;
  Scalar value;
};

inline constexpr size_t kMaxGeneratedOperands = 8, kMaxGeneratedNumbers = 16;

// Like PointwiseCall, but operands are tensors of the device, and 0-dim CPU tensors are numbers.
// Expressions live forever, and their addresses identify them.
struct GeneratedPointwise {
  const char* name;  // "add"
  const Expression* body;
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
  const char* name;  // "sum"
  const ReduceExpressions* parts;
  const ReduceCall& call;  // its pointers to data have no meaning
  const Tensor& out;
  const Tensor& in;
};

// The pointwise call of an operator with its tensors and numbers in the schema's order. Strides are
// in bytes, for the output, then for each input. False when no backend generates it.
bool run_generated(const Operator& op, const Tensor& out, const DimVector& out_strides,
                   ArrayRef<const Tensor*> inputs, const DimVector* input_strides,
                   ArrayRef<Scalar> numbers, IntList shape, ScalarType compute);
bool run_generated(const Operator& op, const ReduceCall& call, const Tensor& out, const Tensor& in);
// out = self on one device, of any strides and dtypes.
bool convert_generated(const Tensor& out, const Tensor& self);

}  // namespace treadle
