// Reductions: one engine for every operator with `reduce:`. The generator gives the constant data (ReduceOp) and a kernel for
// each dtype; dims, result dtype, allocation, the forms and the split into fixed chunks are here.
#pragma once

#include "aten/iterator/pointwise.h"
#include "core/operator.h"
#include "core/tensor.h"

namespace treadle {

// How the input's dtype decides the dtype of the result.
enum class ReducePromote : uint8_t {
  Same,   // the input's (amax, amin)
  Sum,    // integers and bool become int64 (sum, prod)
  Float,  // must be floating or complex (mean)
  Bool,   // bool (any, all)
};

// `shape` is that of the input, ordered and merged by the engine; out.strides are 0 along reduced dimensions.
struct ReduceCall {
  DimVector shape;
  PointwiseOperand in;   // of the compute dtype or another: the kernel loads through the conversion of the pointwise engine
  PointwiseOperand out;
  int64_t reduced = 1;   // elements folded into each output element
  int64_t outputs = 1;
  ScalarType compute = ScalarType::Float32;
};
using ReduceKernel = void(const ReduceCall& call);

struct ReduceOp {
  const char* name;
  Operator* op;
  ReducePromote promote;
  bool has_identity;  // else an empty reduction is an error (amax, amin)
};

// `dims` absent or empty: all.
Tensor reduce(const ReduceOp& op, const Tensor& self, OptionalIntList dims, bool keepdim, std::optional<ScalarType> dtype);
void reduce_out(const ReduceOp& op, const Tensor& self, OptionalIntList dims, bool keepdim, std::optional<ScalarType> dtype,
                const Tensor& out);

}  // namespace treadle
