// Programs: pointwise blocks that run one after another over tiles of a common shape. The values of
// a step stay in the nearest cache until the steps that read them have run.
//
//   Program program;                                 // x * y + 1
//   const int x = program.read(Float32), y = program.read(Float32);
//   const int xy = program.add({Float32, mul_block, .inputs = {x, y}, .input_count = 2, ...});
//   const int sum = program.add({Float32, add_scalar_block, .inputs = {xy}, .scalars = &one, ...});
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
#include "aten/engine/cpu/reduce_blocks.h"

namespace treadle::simd {

// The extent of a value: an element for each element of the shape, or for each row of the program's
// length.
enum class Extent : uint8_t { Elements, Rows };

// A result of a step: the type in which its loop writes it, which is the step's `compute` or bool,
// and the dtype of the operator's result, to which that is converted.
struct StepResult {
  ScalarType written;
  ScalarType dtype;
  bool is_rounded = false;  // as `dtype` is, by the loop
};

// One loop over the elements of a tile: a block, or a fold. Values are numbered: those that are
// read, and then what each step computes.
struct ProgramStep {
  static constexpr int kMaxInputs = 24, kMaxResults = 8;

  ScalarType compute;  // of the elements that the loop reads
  // One of these is not null. A fold makes an element of each row of the one input.
  PointwiseBlock* block = nullptr;
  FusedBlock* fused = nullptr;
  const ReduceFunctions* fold = nullptr;
  std::array<int, kMaxInputs> inputs{};
  int input_count = 0;
  std::array<StepResult, kMaxResults> results{};  // several of `fused` alone
  int result_count = 1;
  const Scalar* scalars = nullptr;
  // Of the results. Elements may be computed from rows, each of which is seen along its row.
  Extent extent = Extent::Elements;
};

// A fold of all elements of a value, in the order of the shape, which the program ends with.
struct ProgramTotal {
  int value;
  const ReduceFunctions* fold;  // of the type that the value's dtype is computed in
  ScalarType dtype;             // of the result
  void* result;
};

class Program {
 public:
  // Rows are of so many elements, of which the last dimensions are made. They should fit the
  // nearest cache. Only a program with rows has values and folds of them, and it has no totals.
  void set_row(int64_t elements) { row_ = elements; }

  // The number of the value that an operand of this dtype has. All are read before the first step.
  int read(ScalarType dtype, Extent extent = Extent::Elements);
  // The number of the step's first result; the others follow.
  int add(const ProgramStep& step);
  // Writes a value to an operand of its dtype; the operands follow those that are read.
  void write(int value);
  void total(const ProgramTotal& total) { totals_.push_back(total); }

  const std::vector<ProgramTotal>& totals() const { return totals_; }
  int reads() const { return reads_; }
  int values() const { return static_cast<int>(dtypes_.size()); }
  const std::vector<ProgramStep>& steps() const { return steps_; }
  const std::vector<int>& writes() const { return writes_; }
  ScalarType dtype(int value) const { return dtypes_[static_cast<size_t>(value)]; }
  Extent extent(int value) const { return extents_[static_cast<size_t>(value)]; }
  int64_t row() const { return row_; }  // 0: none

 private:
  int reads_ = 0;
  int64_t row_ = 0;
  std::vector<ScalarType> dtypes_;  // of the values
  std::vector<Extent> extents_;
  std::vector<ProgramStep> steps_;
  std::vector<int> writes_;
  std::vector<ProgramTotal> totals_;
};

// `operands` are the tensors that are read, and then those that are written, over `shape`, whose
// dimensions are merged and not of size 0. Those that are written meet no other. Operands of rows
// are over `rows`, whose elements are the shape's rows in order.
void run_program(const Program& program, ArrayRef<PointwiseOperand> operands, IntList shape,
                 IntList rows = {});

}  // namespace treadle::simd
