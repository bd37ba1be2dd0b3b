// Runs block loops over operands of any strides and dtypes. Operands that a block cannot read or
// write directly pass through buffers of the compute type, a few hundred elements at a time, which
// stay in the nearest cache.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/cpu/pointwise_blocks.h"

#include <algorithm>
#include <cstring>

#include "aten/backend/cpu/convert.h"
#include "aten/backend/cpu/non_temporal_stores.h"
#include "core/base/parallel.h"

namespace treadle::simd {
namespace {

constexpr int64_t kBlock = 512;        // elements of a buffer
constexpr int64_t kGrain = 32 * 1024;  // elements of a parallel chunk; a multiple of kBlock
constexpr int64_t kLongRow = 64;       // rows at least this long are walked one at a time
constexpr int64_t kMaxItem = 16;

// One operand of a strided run, and how the block gets at it.
struct Access {
  const PointwiseOperand* operand;
  ConvertFn* convert;
  int64_t inner;   // stride along a row
  bool unit_rows;  // a row can be handed to the block as it is
  bool dense;      // so can the whole operand
  bool constant;   // one element, seen everywhere
};

class StridedRun {
 public:
  StridedRun(const PointwiseCall& call, PointwiseBlock* block, ScalarType result)
      : call_(call), block_(block), result_(result), row_(call.shape[call.dims - 1]) {
    for (int k = 0; k < call.inputs; ++k)
      in_[k] = access(call.in[k], call.compute, converter(call.in[k].dtype, call.compute));
    out_ = access(call.out, result, converter(result, call.out.dtype));
    out_.constant = false;
  }

  void run(int64_t begin, int64_t end) {
    // Small enough for the stack; uninitialised, for most runs use few of them.
    alignas(64) char buffers[kMaxPointwiseInputs + 1][kBlock * kMaxItem];
    DimVector index(static_cast<size_t>(call_.dims));
    unravel(shape(), begin, index.data());
    for (int k = 0; k < call_.inputs; ++k) {
      if (!in_[k].constant) continue;
      in_[k].convert(call_.in[k].data, 0, buffers[k], item_size(call_.compute),
                     std::min(kBlock, end - begin));
    }
    if (row_ >= kLongRow)
      run_rows(begin, end, index.data(), buffers);
    else
      run_short_rows(begin, end, index.data(), buffers);
  }

 private:
  using Buffers = char[kMaxPointwiseInputs + 1][kBlock * kMaxItem];

  Access access(const PointwiseOperand& operand, ScalarType type, ConvertFn* convert) const {
    Access a{&operand, convert, operand.strides[call_.dims - 1], false, false, true};
    a.unit_rows = operand.dtype == type && a.inner == item_size(type);
    a.dense = operand.dtype == type;
    int64_t expected = item_size(type);
    for (int d = call_.dims - 1; d >= 0; --d) {
      a.dense = a.dense && operand.strides[d] == expected;
      a.constant = a.constant && operand.strides[d] == 0;
      expected *= call_.shape[d];
    }
    return a;
  }

  // Pieces of rows, each as long as the row where no operand needs a buffer.
  void run_rows(int64_t begin, int64_t end, int64_t* index, Buffers& buffers) {
    bool buffered = !out_.unit_rows;
    for (int k = 0; k < call_.inputs; ++k) buffered |= !in_[k].unit_rows;
    const void* in[kMaxPointwiseInputs];
    for (int64_t at = begin; at < end;) {
      const int64_t rest = std::min(end - at, row_ - index[call_.dims - 1]);
      const int64_t n = buffered ? std::min(rest, kBlock) : rest;
      for (int k = 0; k < call_.inputs; ++k) {
        in[k] = buffers[k];
        if (in_[k].constant) continue;
        // One element for the whole row, which the buffer has from the row's first piece on.
        if (in_[k].inner == 0 && at != begin && index[call_.dims - 1] != 0) continue;
        char* const source =
            call_.in[k].data + offset_of(IntList(call_.in[k].strides, dims()), index);
        if (in_[k].unit_rows)
          in[k] = source;
        else
          in_[k].convert(source, in_[k].inner, buffers[k], item_size(call_.compute), n);
      }
      char* const target = call_.out.data + offset_of(IntList(call_.out.strides, dims()), index);
      char* const result = out_.unit_rows ? target : buffers[kMaxPointwiseInputs];
      block_(result, in, call_.scalars, n, Pass::InOrder);
      if (!out_.unit_rows) out_.convert(result, item_size(result_), target, out_.inner, n);
      at += n;
      index[call_.dims - 1] += n;
      if (index[call_.dims - 1] == row_) next_row(shape(), index);
    }
  }

  // Blocks that span rows.
  void run_short_rows(int64_t begin, int64_t end, int64_t* index, Buffers& buffers) {
    const void* in[kMaxPointwiseInputs];
    for (int64_t at = begin; at < end;) {
      const int64_t n = std::min(end - at, kBlock);
      for (int k = 0; k < call_.inputs; ++k) {
        in[k] = buffers[k];
        if (in_[k].constant) continue;
        if (in_[k].dense)
          in[k] = call_.in[k].data + at * item_size(call_.compute);
        else
          gather(in_[k], index, n, buffers[k]);
      }
      char* const result =
          out_.dense ? call_.out.data + at * item_size(result_) : buffers[kMaxPointwiseInputs];
      block_(result, in, call_.scalars, n, Pass::InOrder);
      if (!out_.dense) scatter(index, n, result);
      at += n;
      if (at < end) unravel(shape(), at, index);
    }
  }

  void gather(const Access& a, const int64_t* start, int64_t n, char* buffer) const {
    const int64_t item = item_size(call_.compute);
    if (a.inner == 0 && a.operand->dtype == call_.compute) {
      if (item == 4) return repeat<uint32_t>(a, start, n, buffer);
      if (item == 8) return repeat<uint64_t>(a, start, n, buffer);
    }
    each_row(start, n, a.operand->strides, [&](int64_t offset, int64_t done, int64_t count) {
      a.convert(a.operand->data + offset, a.inner, buffer + done * item, item, count);
    });
  }
  // Where all elements of a row are one. Whole pieces are written: the elements behind a row are
  // those of the next one, and the buffer has room behind the last.
  template <class Bits>
  void repeat(const Access& a, const int64_t* start, int64_t n, char* buffer) const {
    constexpr int64_t kPiece = 8;
    static_assert((kBlock + kPiece) * static_cast<int64_t>(sizeof(Bits)) <= kBlock * kMaxItem);
    each_row(start, n, a.operand->strides, [&](int64_t offset, int64_t done, int64_t count) {
      Bits element, *const to = reinterpret_cast<Bits*>(buffer) + done;
      std::memcpy(&element, a.operand->data + offset, sizeof(Bits));
      for (int64_t k = 0; k < count; k += kPiece) std::fill_n(to + k, kPiece, element);
    });
  }
  void scatter(const int64_t* start, int64_t n, const char* buffer) const {
    const int64_t item = item_size(result_);
    each_row(start, n, call_.out.strides, [&](int64_t offset, int64_t done, int64_t count) {
      out_.convert(buffer + done * item, item, call_.out.data + offset, out_.inner, count);
    });
  }
  template <class F>
  void each_row(const int64_t* start, int64_t n, const int64_t* strides, F f) const {
    DimVector index(start, start + call_.dims);
    const size_t last = dims() - 1;
    int64_t offset = offset_of(IntList(strides, dims()), index.data());
    for (int64_t done = 0; done < n;) {
      const int64_t count = std::min(n - done, row_ - index[last]);
      f(offset, done, count);
      done += count;
      // Most rows are a stride behind the one before. The others begin a plane.
      if (last > 0 && index[last - 1] + 1 < call_.shape[last - 1]) {
        offset += strides[last - 1] - index[last] * strides[last];
        index[last] = 0;
        ++index[last - 1];
      } else {
        next_row(shape(), index.data());
        offset = offset_of(IntList(strides, dims()), index.data());
      }
    }
  }

  size_t dims() const { return static_cast<size_t>(call_.dims); }
  IntList shape() const { return {call_.shape, dims()}; }

  const PointwiseCall& call_;
  PointwiseBlock* block_;
  ScalarType result_;
  int64_t row_;
  Access out_;
  Access in_[kMaxPointwiseInputs];
};

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
  StridedRun run(call, block, blocks.bool_result ? ScalarType::Bool : call.compute);
  parallel_for(call.numel, kGrain, [&](int64_t begin, int64_t end) { run.run(begin, end); });
}

}  // namespace treadle::simd
