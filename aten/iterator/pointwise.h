// Pointwise operators: one engine for all of them. The generator gives the constant data (PointwiseOp) and a kernel for each
// compute dtype; promotion, broadcasting, allocation, overlap checks, the three forms and the parallel split are here.
#pragma once

#include "core/operator.h"
#include "core/tensor.h"

namespace treadle {

// How operand dtypes decide the dtype that is computed in and the dtype of the result.
enum class Promote : uint8_t {
  Common,   // both are the operands' promoted dtype
  Float,    // as Common, but integers and bool become the default floating dtype
  Compare,  // computed in the promoted dtype, result bool
  Bool,     // computed in the promoted dtype, each operand seen as a truth value, result bool
  None,     // operands must have one dtype
};

// Dimensions after broadcasting and merging, outermost first. Strides are in bytes.
struct PointwiseOperand {
  char* data = nullptr;
  ScalarType dtype = ScalarType::Float32;
  DimVector strides;
};

inline constexpr int kMaxPointwiseInputs = 6;
inline constexpr int kMaxPointwiseScalars = 6;

// What a kernel is given: one output, then the inputs, over a common shape.
struct PointwiseCall {
  DimVector shape;  // merged; at least one dimension; no dimension of size 0
  PointwiseOperand out;
  PointwiseOperand in[kMaxPointwiseInputs];
  int inputs = 0;
  Scalar scalars[kMaxPointwiseScalars];
  int scalar_count = 0;
  ScalarType compute = ScalarType::Float32;  // what the kernel of this cell computes in
  int64_t numel = 0;
};
using PointwiseKernel = void(const PointwiseCall& call);

// Constant data about an entry with `pointwise:`.
struct PointwiseOp {
  const char* name;  // "add"
  Operator* op;
  Promote promote;
};

using TensorRefs = ArrayRef<const Tensor*>;

// `inputs` are the Tensor arguments in order (an undefined one is an error), `scalars` the number arguments in order;
// `promoting` of the scalars (a bit mask) are operands, which take part in promotion by category.
Tensor pointwise(const PointwiseOp& op, TensorRefs inputs, ArrayRef<Scalar> scalars, uint32_t promoting);
void pointwise_out(const PointwiseOp& op, TensorRefs inputs, ArrayRef<Scalar> scalars, uint32_t promoting, const Tensor& out);
// Writes the first input. Its shape must already be the broadcast shape, and the result must be castable to its dtype.
void pointwise_inplace(const PointwiseOp& op, TensorRefs inputs, ArrayRef<Scalar> scalars, uint32_t promoting);

}  // namespace treadle
