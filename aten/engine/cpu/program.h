// Programs: pointwise blocks that run one after another over tiles of a common shape. The values of
// a step stay in the nearest cache until the steps that read them have run.
//
//   Program program;                                 // x * y + 1
//   const int x = program.read(Float32), y = program.read(Float32);
//   const int xy = program.add({mul_block, Float32, Float32, Float32, {x, y}, 2, nullptr});
//   const int sum = program.add({add_scalar_block, ..., {xy}, 1, &one});
//   program.write(sum);
//   run_program(program, operands, shape);           // x, y and the result, in this order
//
// A step rounds as the operator does that runs alone, so a program has the bits of its operators.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "aten/engine/cpu/pointwise_blocks.h"

namespace treadle::simd {

// Values are numbered: those that are read, and then what each step computes.
struct ProgramStep {
  PointwiseBlock* block;
  ScalarType compute;  // of the elements that the block reads
  ScalarType result;   // of those that it writes: `compute`, or bool
  ScalarType dtype;    // of the operator's result, to which `result` is converted
  std::array<int, kMaxPointwiseInputs> inputs;
  int input_count;
  const Scalar* scalars;
};

class Program {
 public:
  // The number of the value that an operand of this dtype has. All are read before the first step.
  int read(ScalarType dtype);
  int add(const ProgramStep& step);
  // Writes a value to an operand of its dtype; the operands follow those that are read.
  void write(int value);

  int reads() const { return reads_; }
  int values() const { return static_cast<int>(dtypes_.size()); }
  const std::vector<ProgramStep>& steps() const { return steps_; }
  const std::vector<int>& writes() const { return writes_; }
  ScalarType dtype(int value) const { return dtypes_[static_cast<size_t>(value)]; }

 private:
  int reads_ = 0;
  std::vector<ScalarType> dtypes_;  // of the values
  std::vector<ProgramStep> steps_;
  std::vector<int> writes_;
};

// `operands` are the tensors that are read, and then those that are written, over `shape`, whose
// dimensions are merged and not of size 0. Those that are written meet no other.
void run_program(const Program& program, ArrayRef<PointwiseOperand> operands, IntList shape);

}  // namespace treadle::simd
