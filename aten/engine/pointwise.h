// Pointwise operators: one engine for all of them. The generator supplies the constant data
// (PointwiseOp) and a kernel for each dtype. The engine does promotion, broadcasting, allocation,
// overlap checks, the three forms and the parallel split.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/dispatch/operator.h"
#include "core/tensor/tensor.h"

namespace treadle {

namespace simd {
struct PointwiseBlocks;
}

// How operand dtypes decide the dtype that is computed in and the dtype of the result.
enum class Promote : uint8_t {
  Common,   // both are the operands' promoted dtype
  Float,    // as Common, but integers and bool become the default floating dtype
  Compare,  // computed in the promoted dtype, result bool
  Bool,     // each operand is converted to bool and computed on so, result bool
  None,     // operands must have one dtype, which is both
  Real,     // as Common, but the result of complex numbers is real (their absolute value)
};

inline constexpr int kMaxPointwiseInputs = 6;
inline constexpr int kMaxPointwiseScalars = 6;

// A tensor of a call. Strides are in bytes, outermost dimension first.
struct PointwiseOperand {
  char* data;
  const int64_t* strides;
  ScalarType dtype;
};

// The arguments of a kernel: one output, then the inputs, over a common shape. Dimensions are
// merged after broadcasting; there is at least one, and none has size 0. Operands may be of other
// dtypes than `compute`: the kernel converts.
struct PointwiseCall {
  PointwiseOperand out;
  PointwiseOperand in[kMaxPointwiseInputs];
  const int64_t* shape;  // outermost first
  int dims;
  int inputs;
  const Scalar* scalars;
  int scalar_count;
  ScalarType compute;  // float32 for the 16-bit floats, bool for Promote::Bool
  bool direct;  // every operand is contiguous and of the compute dtype (out: of the block's result
                // dtype)
  int64_t numel;
};
using PointwiseKernel = void(const PointwiseCall& call);

// Constant data about an entry with `pointwise:`. `name` is what messages call the operator.
struct PointwiseOp {
  const char* name;  // "add"
  Operator* op;
  Promote promote;
  // Bits of the dtypes in which an error stops the kernel with some elements written: integers that
  // are divided by zero.
  uint32_t throws = 0;
  // Bits of the numbers of which one is 0 where that happens; none where elements may be to blame.
  uint32_t divisors = 0;
  // The lowest bits of a result follow from those of the operands, so that a number may be cut to
  // them: int8 & 255, int8 + 200.
  bool keeps_low_bits = false;
  // The generated kernel for the CPU, and the loops that it runs, which programs of many operators
  // run, too; null where the generator makes none.
  PointwiseKernel* cpu_kernel = nullptr;
  const simd::PointwiseBlocks& (*cpu_blocks)() = nullptr;
  // The functor of aten/elements-inl.h that computes one element; null for operators from outside.
  const char* element = nullptr;
};

using TensorRefs = ArrayRef<const Tensor*>;

// `inputs` are the Tensor arguments in order (an undefined one is an error), `scalars` the number
// arguments in order; `promoting` of the scalars (a bit mask) are operands, which take part in
// promotion by category.
Tensor pointwise(const PointwiseOp& op, TensorRefs inputs, ArrayRef<Scalar> scalars,
                 uint32_t promoting);
void pointwise_out(const PointwiseOp& op, TensorRefs inputs, ArrayRef<Scalar> scalars,
                   uint32_t promoting, const Tensor& out);
// Writes the first input. Its shape must already be the broadcast shape, and the result must be
// castable to its dtype.
void pointwise_inplace(const PointwiseOp& op, TensorRefs inputs, ArrayRef<Scalar> scalars,
                       uint32_t promoting);

}  // namespace treadle
