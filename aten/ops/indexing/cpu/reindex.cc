// reindex: out[i] = self[f(i)], or a fixed value where f(i) is outside of self.
//
// Where the elements that are inside form a box whose indices are linear, the operator is a copy
// between strided tensors.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/indexing/cpu/reindex.h"

#include <algorithm>
#include <cstring>

#include "aten/backend/cpu/element_bits.h"
#include "aten/engine/copy.h"
#include "aten/ops/indexing/cpu/index_walk.h"
#include "aten/ops/indexing/index_map.h"
#include "aten/ops/reindex.h"
#include "core/base/checked.h"

namespace treadle::cpu {
namespace {

using shape::IndexMap;
using shape::IndexSum;

// The loop elements from begin to end of each loop, which are inside of the target, and their
// target elements: offset + strides[0] * i0 + ...
struct Box {
  DimVector begin, size, strides;
  int64_t offset = 0;
};

// Limits the box to where constant + factor * i is in [0, extent). False if the numbers do not fit.
bool limit(Box& box, size_t loop, int64_t constant, int64_t factor, int64_t extent) {
  // The inside is where low < factor * i < high, for a factor above 0.
  const bool forwards = factor > 0;
  const Checked low = (forwards ? Checked(0) - constant : Checked(constant) - (extent - 1)) - 1;
  const Checked high = (forwards ? Checked(extent - 1) - constant : Checked(constant)) + 1;
  const Checked steps = forwards ? Checked(factor) : Checked(0) - factor;
  if (!low.fits() || !high.fits() || !steps.fits()) return false;
  const int64_t before = shape::floor_quotient(low.value(), steps.value());
  const int64_t last = shape::floor_quotient(high.value() - 1, steps.value());
  const int64_t end = box.begin[loop] + box.size[loop];
  box.begin[loop] = std::clamp(before + 1, box.begin[loop], end);
  box.size[loop] = std::clamp(last + 1, box.begin[loop], end) - box.begin[loop];
  return true;
}

// The box of all elements that are inside, if there is one and copying it is simple.
std::optional<Box> box_of(const IndexMap& map, IntList strides) {
  Box box{DimVector(map.loops.size()), map.loops, DimVector(map.loops.size())};
  std::vector<Checked> steps(map.loops.size(), Checked(0));
  Checked offset = 0;
  for (size_t d = 0; d < map.functions.size(); ++d) {
    const std::optional<IndexSum> sum = shape::as_linear_sum(map.functions[d], map.loops);
    if (!sum || map.extents[d] == 0) return std::nullopt;
    offset += Checked(sum->constant) * strides[d];
    const bool inside = map.functions[d].is_inside(map.extents[d]);
    int loops = 0;
    for (size_t loop = 0; loop < steps.size(); ++loop) {
      const int64_t factor = sum->factors[loop];
      if (factor == 0) continue;
      ++loops;
      steps[loop] += Checked(factor) * strides[d];
      if (!inside && !limit(box, loop, sum->constant, factor, map.extents[d])) return std::nullopt;
    }
    // Of an index of several loops, or of none, the elements inside are no box.
    if (!inside && loops != 1) return std::nullopt;
  }
  for (size_t loop = 0; loop < steps.size(); ++loop) {
    offset += steps[loop] * box.begin[loop];
    box.strides[loop] = steps[loop].value();
    if (!steps[loop].fits()) return std::nullopt;
  }
  box.offset = offset.value();
  return offset.fits() ? std::optional(box) : std::nullopt;
}

template <class Element>
void write_block(const IndexBlock& block, const Element* from, Element filler, Element* to) {
  to += block.first;
  const int64_t count = block.count, step = block.step;
  const int64_t* const table = block.table;
  switch (block.kind) {
    case IndexBlock::Outside:
      std::fill(to, to + count, filler);
      return;
    case IndexBlock::Strided:
      from += block.offset;
      if (step == 1) {
        std::memcpy(to, from, static_cast<size_t>(count) * sizeof(Element));
      } else if (step == 0) {
        std::fill(to, to + count, *from);
      } else {
        for (int64_t j = 0; j < count; ++j) to[j] = from[j * step];
      }
      return;
    case IndexBlock::Table:
      from += block.offset;
      for (int64_t j = 0; j < count; ++j) to[j] = from[table[j]];
      return;
    case IndexBlock::Listed:
      for (int64_t j = 0; j < count; ++j)
        to[j] = table[j] == IndexBlock::kOutside ? filler : from[table[j]];
      return;
  }
}

template <class Element>
void write_elements(const IndexMap& map, const Tensor& self, Element filler, const Tensor& out) {
  Element* const to = static_cast<Element*>(out.data());
  if (const std::optional<Box> box = box_of(map, self.strides())) {
    if (product(box->size) < out.numel())
      parallel_for(out.numel(), kGrain,
                   [&](int64_t begin, int64_t end) { std::fill(to + begin, to + end, filler); });
    if (product(box->size) == 0) return;
    const Tensor target =
        alias_with_geometry(out, box->size, out.strides(),
                            out.storage_offset() + offset_of(out.strides(), box->begin.data()));
    const Tensor source =
        alias_with_geometry(self, box->size, box->strides, self.storage_offset() + box->offset);
    return copy_strided(target, source);
  }
  const Element* const from = static_cast<const Element*>(self.data());
  const IndexWalk walk("reindex", map, self.strides());
  parallel_for(walk.pieces(), grain_for(walk.piece()), [&](int64_t begin, int64_t end) {
    walk.run(begin, end, [=](const IndexBlock& block) { write_block(block, from, filler, to); });
  });
}

template <size_t size>
void fill(const IndexMap& map, const Tensor& self, const Tensor& filler, const Tensor& out) {
  write_elements(map, self, *filler.data_as<ElementBits<size>>(), out);
}

template <class T>
void reindex_cpu(const Tensor& self, IntList shape, std::string_view indices,
                 const Scalar& overflow_value, const Tensor& out) {
  const T value = overflow_value.checked_to<T>("reindex");
  if (out.numel() == 0) return;
  bits_of<T> filler;
  std::memcpy(&filler, &value, sizeof(value));
  const IndexMap map = shape::index_map("reindex", indices, shape, self.sizes(), "x");
  write_elements(map, self, filler, out);
}

const auto registered = register_kernels<aten::ops::reindex, DeviceType::CPU>(
    []<class T>() { return &reindex_cpu<T>; }, "reindex_cpu");

}  // namespace

Tensor reindex_filler(const Scalar& overflow_value, ScalarType dtype) {
  using Op = aten::ops::reindex;
  void* const kernel = Op::op.table().find(kCPU, Layout::Strided, dtype);
  // Nothing is inside of no elements.
  const Tensor none = empty_cpu({0}, dtype), filler = empty_cpu({1}, dtype);
  reinterpret_cast<Op::Kernel*>(kernel)(none, {1}, "i0;", overflow_value, filler);
  return filler;
}

void reindex_into(const IndexMap& map, const Tensor& self, const Tensor& filler,
                  const Tensor& out) {
  switch (out.element_size()) {
    case 1:
      return fill<1>(map, self, filler, out);
    case 2:
      return fill<2>(map, self, filler, out);
    case 4:
      return fill<4>(map, self, filler, out);
    case 8:
      return fill<8>(map, self, filler, out);
    default:
      return fill<16>(map, self, filler, out);
  }
}

}  // namespace treadle::cpu
