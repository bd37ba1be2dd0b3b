// Pointwise blocks: the one loop that exists per operator, dtype and instruction set, and
// run_blocks, which runs it over any operands.
//
// A block runs over consecutive elements of one type. run_blocks does all else around it (strides,
// broadcasting, conversions, 16-bit floats, the parallel split), so results have the same bits in
// every layout.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "aten/engine/pointwise.h"

namespace treadle::simd {

// How a block goes through its elements: in order, or by cpu::InterleavedPages where there are
// many; and then past the caches (see cpu::NonTemporalStores), where `out` is at the start of a
// line.
enum class Pass : uint8_t { InOrder, ByPages, PastCaches };

// `out` has `n` elements of the compute type, or of bool where the operator's result is a truth
// value.
using PointwiseBlock = void(void* out, const void* const* in, const Scalar* scalars, int64_t n,
                            Pass pass);

// A block of several operators, which has several results: each of the compute type, or of bool.
using FusedBlock = void(void* const* out, const void* const* in, const Scalar* scalars, int64_t n,
                        Pass pass);

// The blocks of one target, by compute dtype; null where the operator has none.
struct PointwiseBlocks {
  std::array<PointwiseBlock*, kNumScalarTypes> by_dtype{};
  bool bool_result = false;
};

// The kernel of every cell: runs the operator's block for `call.compute`.
void run_blocks(const PointwiseCall& call, const PointwiseBlocks& blocks);

}  // namespace treadle::simd
