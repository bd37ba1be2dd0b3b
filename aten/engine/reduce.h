// Reductions: one engine for every operator with `reduce:`. The generator supplies the constant
// data (ReduceOp) and a kernel for each dtype. The engine does dims, the result's dtype,
// allocation, the forms and the split into fixed chunks.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/dispatch/operator.h"
#include "core/tensor/tensor.h"

namespace treadle {

namespace simd {
struct ReduceBlocks;
}

// How the input's dtype decides the dtype of the result.
enum class ReducePromote : uint8_t {
  Same,   // the input's (amax, amin)
  Sum,    // integers and bool become int64, but uint64 stays (sum, prod)
  Float,  // must be floating or complex (mean)
  Bool,   // bool, but uint8 for uint8 (any, all); computed on truth values
};

// The arguments of a kernel: the input's dimensions, split into those that stay and those that are
// folded, each outermost first and merged. Strides are in bytes. There is at least one element to
// fold and one output.
struct ReduceCall {
  const char* in;
  char* out;
  DimVector kept_sizes, kept_in_strides, kept_out_strides;
  DimVector reduced_sizes, reduced_in_strides;
  int64_t outputs = 1;  // product of kept_sizes
  int64_t reduced = 1;  // product of reduced_sizes: elements folded into each output
  ScalarType in_dtype, out_dtype;
  ScalarType compute;  // what is accumulated in; the kernel converts from and to the dtypes above
};
using ReduceKernel = void(const ReduceCall& call);

struct ReduceOp {
  const char* name;
  Operator* op;
  ReducePromote promote;
  bool has_identity;  // else an empty reduction is an error (amax, amin)
  // Bits of the dtypes in which an error stops the kernel with some results written.
  uint32_t throws = 0;
  // The generated kernel for the CPU, and the loops that it runs, which programs of many operators
  // run, too; null where the generator makes none.
  ReduceKernel* cpu_kernel = nullptr;
  const simd::ReduceBlocks& (*cpu_blocks)() = nullptr;
};

// `dims` absent or empty: all; of `any` and `all`, empty is none.
Tensor reduce(const ReduceOp& op, const Tensor& self, OptionalIntList dims, bool keepdim,
              std::optional<ScalarType> dtype);
void reduce_out(const ReduceOp& op, const Tensor& self, OptionalIntList dims, bool keepdim,
                std::optional<ScalarType> dtype, const Tensor& out);

}  // namespace treadle
