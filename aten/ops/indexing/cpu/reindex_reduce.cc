// reindex_reduce: out[f(i)] = combine(out[f(i)], self[i]) for each i whose f(i) is inside of out.
//
// What is combined in one element of `out` has the order of the elements of self, at any number of
// threads. Where an index of `out` depends on one loop alone, as that of a batch does, different
// indices of this loop run in parallel. Otherwise threads compute where elements go, and
// deterministic_scatter() shares out the writes.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/reindex_reduce.h"

#include <limits>

#include "aten/backend/cpu/long_sums.h"
#include "aten/engine/copy.h"
#include "aten/ops/indexing/cpu/combine.h"
#include "aten/ops/indexing/cpu/deterministic_scatter.h"
#include "aten/ops/indexing/cpu/index_plan.h"
#include "aten/ops/indexing/cpu/index_walk.h"
#include "aten/ops/indexing/index_map.h"

namespace treadle::cpu {
namespace {

// Elements whose targets are known at one time.
constexpr int64_t kBatch = int64_t{1} << 20;

template <class T, class To, class Combine>
void combine_block(const IndexBlock& block, const T* from, To* to, Combine combine) {
  from += block.first;
  const int64_t count = block.count, step = block.step;
  const int64_t* const table = block.table;
  switch (block.kind) {
    case IndexBlock::Outside:
      return;
    case IndexBlock::Strided:
      to += block.offset;
      if (step == 0) {
        To all = *to;
        for (int64_t j = 0; j < count; ++j) combine(all, from[j]);
        *to = all;
      } else {
        for (int64_t j = 0; j < count; ++j) combine(to[j * step], from[j]);
      }
      return;
    case IndexBlock::Table:
      to += block.offset;
      for (int64_t j = 0; j < count; ++j) combine(to[table[j]], from[j]);
      return;
    case IndexBlock::Listed:
      for (int64_t j = 0; j < count; ++j)
        if (table[j] != IndexBlock::kOutside) combine(to[table[j]], from[j]);
      return;
  }
}

// Writes the target of each element of the block to targets[element].
void list_targets(const IndexBlock& block, int64_t* targets) {
  for (int64_t j = 0; j < block.count; ++j) {
    switch (block.kind) {
      case IndexBlock::Outside:
        targets[j] = IndexBlock::kOutside;
        break;
      case IndexBlock::Strided:
        targets[j] = block.offset + j * block.step;
        break;
      case IndexBlock::Table:
        targets[j] = block.offset + block.table[j];
        break;
      case IndexBlock::Listed:
        targets[j] = block.table[j];
        break;
    }
  }
}

// combine(first, count, targets) for batches of elements in order.
template <class Combine>
void for_each_batch(const IndexWalk& walk, Combine&& combine) {
  const int64_t pieces = std::max<int64_t>(1, kBatch / walk.piece());
  Offsets targets(pieces * walk.piece());
  for (int64_t begin = 0; begin < walk.pieces(); begin += pieces) {
    const int64_t end = std::min(walk.pieces(), begin + pieces);
    const int64_t first = walk.first_of(begin), last = walk.first_of(end);
    parallel_for(end - begin, grain_for(walk.piece()), [&](int64_t from, int64_t to) {
      walk.run(begin + from, begin + to, [&](const IndexBlock& block) {
        list_targets(block, targets.data() + (block.first - first));
      });
    });
    combine(first, last - first, static_cast<const int64_t*>(targets.data()));
  }
}

template <class T, class To, class Combine>
void combine_all(IndexWalk& walk, const T* from, To* to, int64_t span, Combine combine) {
  const auto run = [&](int64_t begin, int64_t end) {
    walk.run(begin, end, [=](const IndexBlock& block) { combine_block(block, from, to, combine); });
  };
  walk.split_independent();
  if (walk.independent() > 1) {
    const int64_t group = walk.pieces() / walk.independent();
    return parallel_for(walk.independent(), grain_for(group * walk.piece()),
                        [&](int64_t begin, int64_t end) { run(begin * group, end * group); });
  }
  if (num_threads() == 1 || walk.pieces() * walk.piece() <= kGrain) return run(0, walk.pieces());
  for_each_batch(walk, [&](int64_t first, int64_t count, const int64_t* targets) {
    const auto write = [=, from = from + first](int64_t k) {
      if (targets[k] != IndexBlock::kOutside) combine(to[targets[k]], from[k]);
    };
    if (worth_sorting(count, span))
      return deterministic_scatter(
          count, span, [=](int64_t k) { return std::max<int64_t>(0, targets[k]); }, write);
    for (int64_t k = 0; k < count; ++k) write(k);
  });
}

template <class T>
T lowest() {
  if constexpr (std::numeric_limits<compute_type<T>>::has_infinity && is_floating_type<T>)
    return static_cast<T>(-std::numeric_limits<compute_type<T>>::infinity());
  else
    return std::numeric_limits<T>::lowest();
}
template <class T>
T highest() {
  if constexpr (std::numeric_limits<compute_type<T>>::has_infinity && is_floating_type<T>)
    return static_cast<T>(std::numeric_limits<compute_type<T>>::infinity());
  else
    return std::numeric_limits<T>::max();
}

template <class T>
void reduce_elements(const Tensor& self, std::string_view op, std::string_view indices,
                     const Tensor& out) {
  T* const to = out.data_as<T>();
  const auto start_at = [&](T identity) { std::fill(to, to + out.numel(), identity); };
  const shape::IndexMap map =
      shape::index_map("reindex_reduce", indices, self.sizes(), out.sizes(), "the result");
  const auto combined = [&](auto* target, auto combine) {
    if (self.numel() == 0 || out.numel() == 0) return;
    IndexWalk walk("reindex_reduce", map, out.strides());
    combine_all(walk, self.data_as<T>(), target, out.numel(), combine);
  };
  // Sums and products of many elements.
  const auto fold = [&](auto combine) {
    if (!worth_wide_sums<T>(self.numel(), out.numel())) return combined(to, combine);
    with_wide_sums(to, out.numel(), [&](wide_type<T>* target) { combined(target, combine); });
  };
  if (op == "sum") {
    start_at(static_cast<T>(0));
    return fold(Add());
  }
  if (op == "prod") {
    start_at(static_cast<T>(1));
    return fold(Multiply());
  }
  if constexpr (!is_complex_type<T>) {
    start_at(op == "max" ? lowest<T>() : highest<T>());
    if (op == "max") return combined(to, Largest());
    combined(to, Smallest());
  }
}

template <class T>
void reindex_reduce_cpu(const Tensor& self, std::string_view op, IntList /*shape*/,
                        std::string_view indices, const Tensor& out) {
  Tensor from = self;
  if (out.dtype() != self.dtype() || !self.is_contiguous()) {
    from = empty_cpu(self.sizes(), out.dtype());
    copy_strided(from, self);
  }
  // Of truth values, "or" is the sum and "and" the product.
  if (op == "logical_or") return reduce_elements<bool>(from, "sum", indices, out);
  if (op == "logical_and") return reduce_elements<bool>(from, "prod", indices, out);
  reduce_elements<T>(from, op, indices, out);
}

const auto registered = register_kernels<aten::ops::reindex_reduce, DeviceType::CPU>(
    []<class T>() { return &reindex_reduce_cpu<T>; }, "reindex_reduce_cpu");

}  // namespace
}  // namespace treadle::cpu
