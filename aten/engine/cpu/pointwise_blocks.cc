// Runs block loops over operands of any strides and dtypes.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/cpu/pointwise_blocks.h"

#include <algorithm>

#include "aten/backend/cpu/non_temporal_stores.h"
#include "aten/engine/cpu/tiles.h"
#include "core/threads/parallel.h"

namespace treadle::simd {
namespace {

constexpr int64_t kBlock = 2048;       // elements of a buffer, of at most 4 bytes
constexpr int64_t kGrain = 32 * 1024;  // elements of a parallel chunk; a multiple of kBlock

// Where an operand is strided, broadcast or of another dtype.
void run_strided(const PointwiseCall& call, PointwiseBlock* block, ScalarType result) {
  constexpr int64_t kBytes = kBlock * 4;
  TileOperand operands[kMaxPointwiseInputs + 1];
  for (int k = 0; k < call.inputs; ++k) operands[k] = {call.in[k], call.compute, false};
  operands[call.inputs] = {call.out, result, true};
  const Tiles tiles({operands, static_cast<size_t>(call.inputs) + 1},
                    {call.shape, static_cast<size_t>(call.dims)});
  const int64_t item = std::max(item_size(call.compute), item_size(result));
  const int64_t elements = std::min(kBlock, kBytes / item);
  parallel_for(call.numel, kGrain, [&](int64_t begin, int64_t end) {
    // Small enough for the stack; uninitialised, for most calls use few of them.
    alignas(64) char room[kMaxPointwiseInputs + 1][kBytes];
    const TileBuffers buffers{room[0], kBytes, elements};
    tiles.run(begin, end, buffers, end - begin, [&](void* const* at, int64_t n) {
      block(at[call.inputs], at, call.scalars, n, Pass::InOrder);
    });
  });
}

bool writes_over_input(const PointwiseCall& call) {
  for (int k = 0; k < call.inputs; ++k) {
    if (call.in[k].data == call.out.data) return true;
  }
  return false;
}

// Where every operand is a run of the compute type (the result perhaps of bools).
void run_direct(const PointwiseCall& call, PointwiseBlock* block, int64_t out_item) {
  using cpu::NonTemporalStores;
  const int64_t item = item_size(call.compute);
  const auto compute = [&](int64_t begin, int64_t end, Pass pass) {
    const void* in[kMaxPointwiseInputs];
    for (int k = 0; k < call.inputs; ++k) in[k] = call.in[k].data + begin * item;
    block(call.out.data + begin * out_item, in, call.scalars, end - begin, pass);
  };
  const NonTemporalStores writes(call.numel * item);
  if (!writes.on()) {
    parallel_for(call.numel, kGrain,
                 [&](int64_t begin, int64_t end) { compute(begin, end, Pass::InOrder); });
    return;
  }
  // From the start of a line on, if elements begin where lines do: a store to two lines takes two.
  const int64_t until_line = NonTemporalStores::until_line(call.out.data);
  const bool by_lines = out_item == item && until_line % item == 0;
  const int64_t head = by_lines ? until_line / item : 0;
  // An input that is written over has been read into the caches.
  const Pass pass = by_lines && !writes_over_input(call) ? Pass::PastCaches : Pass::ByPages;
  parallel_for(call.numel, kGrain, [&](int64_t begin, int64_t end) {
    const int64_t start = std::min(begin + head, end);  // a chunk is of whole lines
    compute(begin, start, Pass::InOrder);
    compute(start, end, pass);
    writes.finish();
  });
}

}  // namespace

void run_blocks(const PointwiseCall& call, const PointwiseBlocks& blocks) {
  PointwiseBlock* const block = blocks.by_dtype[static_cast<size_t>(call.compute)];
  check_internal(block != nullptr, "a pointwise kernel was called for a dtype it has no loop for");
  if (call.direct) [[likely]] {
    run_direct(call, block, blocks.bool_result ? 1 : item_size(call.compute));
    return;
  }
  run_strided(call, block, blocks.bool_result ? ScalarType::Bool : call.compute);
}

}  // namespace treadle::simd
