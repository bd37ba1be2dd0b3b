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

// ---- loops over elements ------------------------------------------------------------------------

// How the elements of `from` are combined with those of `to`. What calls the two functions is
// compiled once for all dtypes.
struct Combiner {
  const void* from;
  void* to;
  void (*block)(const Combiner& self, const IndexBlock& block);
  // Of the elements first + order[0], first + order[1], ..., `count` of them, whose targets are
  // targets[order[0]], ...
  void (*ordered)(const Combiner& self, int64_t first, const uint32_t* order, int64_t count,
                  const int64_t* targets);
};

template <class T, class To, class Combine>
void combine_block(const Combiner& self, const IndexBlock& block) {
  const T* const from = static_cast<const T*>(self.from) + block.first;
  To* const to = static_cast<To*>(self.to);
  const int64_t count = block.count, offset = block.offset, step = block.step;
  const int64_t* const table = block.table;
  const Combine combine{};
  switch (block.kind) {
    case IndexBlock::Outside:
      return;
    case IndexBlock::Strided:
      if (step == 0) {
        To all = to[offset];
        for (int64_t j = 0; j < count; ++j) combine(all, from[j]);
        to[offset] = all;
      } else {
        for (int64_t j = 0; j < count; ++j) combine(to[offset + j * step], from[j]);
      }
      return;
    case IndexBlock::Table:
      for (int64_t j = 0; j < count; ++j) combine(to[offset + table[j]], from[j]);
      return;
    case IndexBlock::Listed:
      for (int64_t j = 0; j < count; ++j)
        if (table[j] != IndexBlock::kOutside) combine(to[table[j]], from[j]);
      return;
  }
}

template <class T, class To, class Combine>
void combine_ordered(const Combiner& self, int64_t first, const uint32_t* order, int64_t count,
                     const int64_t* targets) {
  const T* const from = static_cast<const T*>(self.from) + first;
  To* const to = static_cast<To*>(self.to);
  const Combine combine{};
  for (int64_t j = 0; j < count; ++j) {
    const int64_t target = targets[order[j]];
    if (target != IndexBlock::kOutside) combine(to[target], from[order[j]]);
  }
}

template <class Combine, class T, class To>
Combiner combiner(const T* from, To* to) {
  return {from, to, &combine_block<T, To, Combine>, &combine_ordered<T, To, Combine>};
}

// ---- the split between threads ------------------------------------------------------------------

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

// Threads find the targets of a batch of elements, and then combine them in order.
void combine_in_batches(const IndexWalk& walk, const Combiner& combine, int64_t span) {
  const int64_t pieces = std::max<int64_t>(1, kBatch / walk.piece());
  Offsets offsets(pieces * walk.piece());
  int64_t* const targets = offsets.data();
  for (int64_t begin = 0; begin < walk.pieces(); begin += pieces) {
    const int64_t end = std::min(walk.pieces(), begin + pieces);
    const int64_t first = walk.first_of(begin), count = walk.first_of(end) - first;
    parallel_for(end - begin, grain_for(walk.piece()), [&](int64_t from, int64_t to) {
      walk.run(begin + from, begin + to, [=](const IndexBlock& block) {
        list_targets(block, targets + (block.first - first));
      });
    });
    if (!worth_sorting(count, span)) {
      combine.block(combine, {IndexBlock::Listed, first, count, 0, 0, targets});
      continue;
    }
    const SortedWrites sorted = sorted_writes(
        count, span,
        [](const void* list, int64_t k) {
          return std::max<int64_t>(0, static_cast<const int64_t*>(list)[k]);
        },
        targets);
    parallel_chunks(kOrderedRuns, [&](int64_t run) {
      combine.ordered(combine, first, sorted.order.data() + sorted.runs[run],
                      sorted.runs[run + 1] - sorted.runs[run], targets);
    });
  }
}

void combine_all(IndexWalk& walk, const Combiner& combine, int64_t span) {
  const auto run = [&](int64_t begin, int64_t end) {
    walk.run(begin, end, [&](const IndexBlock& block) { combine.block(combine, block); });
  };
  walk.split_independent();
  if (walk.independent() > 1) {
    const int64_t group = walk.pieces() / walk.independent();
    return parallel_for(walk.independent(), grain_for(group * walk.piece()),
                        [&](int64_t begin, int64_t end) { run(begin * group, end * group); });
  }
  if (num_threads() == 1 || walk.pieces() * walk.piece() <= kGrain) return run(0, walk.pieces());
  combine_in_batches(walk, combine, span);
}

// ---- the operations -----------------------------------------------------------------------------

// Sums and products of signed integers have the bits of unsigned ones.
template <class T, bool integer = std::is_integral_v<T> && !std::is_same_v<T, bool>>
struct Wrapping {
  using type = T;
};
template <class T>
struct Wrapping<T, true> {
  using type = std::make_unsigned_t<T>;
};

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
  const auto run = [&](const Combiner& combine) {
    if (self.numel() == 0 || out.numel() == 0) return;
    IndexWalk walk("reindex_reduce", map, out.strides());
    combine_all(walk, combine, out.numel());
  };
  // Sums and products, of many elements in a wider type.
  const auto fold = [&]<class Combine>(Combine) {
    using W = typename Wrapping<T>::type;
    const W* const from = self.data_as<W>();
    if (!worth_wide_sums<W>(self.numel(), out.numel()))
      return run(combiner<Combine>(from, out.data_as<W>()));
    with_wide_sums(out.data_as<W>(), out.numel(),
                   [&](wide_type<W>* sums) { run(combiner<Combine>(from, sums)); });
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
    run(op == "max" ? combiner<Largest>(self.data_as<T>(), to)
                    : combiner<Smallest>(self.data_as<T>(), to));
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
