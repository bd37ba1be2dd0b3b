// Chooses the kind of a walk and its blocks, and visits them.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/indexing/cpu/index_walk.h"

#include <array>

namespace treadle::cpu {
namespace {

using shape::IndexFunction;
using shape::IndexMap;
using shape::IndexNode;
using shape::IndexSum;
using shape::ValueRange;

constexpr int64_t kLongRow = 32;       // elements from which rows are better than tables
constexpr int64_t kRowPart = 8192;     // elements of a block of a row
constexpr int64_t kTable = 512;        // elements of a block of tables
constexpr int64_t kLongTable = 65536;  // the same where the last loop is not linear
constexpr int64_t kListed = 512;       // elements that are tested at one time
constexpr int64_t kSmallTable = 16;    // elements for which a block's own work takes longer
constexpr int64_t kGroups = 256;       // independent groups that are enough for any machine

// Sums and products of indices and strides. Where an element is inside, its offset fits, so it is
// right even if a part of it wraps.
int64_t wrapped_sum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrapped_product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

bool is_outside(int64_t index, int64_t extent) {
  return static_cast<uint64_t>(index) >= static_cast<uint64_t>(extent);
}

int64_t ceil_quotient(int64_t a, int64_t b) { return -shape::floor_quotient(-a, b); }

// Limits [low, high) to the j for which base + factor * j is in [0, extent). The numbers are those
// of sums, far from overflow.
void limit(int64_t base, int64_t factor, int64_t extent, int64_t& low, int64_t& high) {
  if (factor == 0) {
    if (is_outside(base, extent)) high = low;
    return;
  }
  const int64_t to_first = -base, to_last = extent - 1 - base;
  const bool forwards = factor > 0;
  low = std::max(low, ceil_quotient(forwards ? to_first : to_last, factor));
  high = std::min(high, shape::floor_quotient(forwards ? to_last : to_first, factor) + 1);
  high = std::max(low, high);
}

bool may_divide_by_zero(const IndexMap& map) {
  return std::ranges::any_of(map.functions, [](const IndexFunction& function) {
    return std::ranges::any_of(function.nodes,
                               [](const IndexNode& node) { return !node.divisor.empty(); });
  });
}

bool is_all_outside(const IndexMap& map) {
  if (may_divide_by_zero(map)) return false;  // which is an error
  for (size_t d = 0; d < map.functions.size(); ++d) {
    const auto& range = map.functions[d].result().range;
    if (map.extents[d] == 0 || (range && (range->low >= map.extents[d] || range->high < 0)))
      return true;
  }
  return false;
}

}  // namespace

// ---- the choice ---------------------------------------------------------------------------------

IndexWalk::IndexWalk(const char* op, const IndexMap& map, IntList strides)
    : op_(op), loops_(map.loops), extents_(map.extents), strides_(strides) {
  elements_ = product(loops_);
  if (loops_.empty()) loops_.push_back(1);
  const auto blocks_of = [&](int64_t elements) {
    block_ = elements;
    pieces_ = (elements_ + block_ - 1) / block_;
  };
  if (is_all_outside(map)) {
    blocks_of(kRowPart);
    return;
  }
  if (make_sums(map)) {
    const int last = static_cast<int>(loops_.size()) - 1;
    const bool by_rows = !has_table(last) && loops_[last] >= kLongRow;
    choose_blocks(by_rows);
    kind_ = by_rows ? Kind::Rows : Kind::Tables;
    if (by_rows || block_ >= std::min(elements_, kSmallTable)) return;
    outer_.clear();
  }
  kind_ = Kind::Programs;
  for (const IndexFunction& function : map.functions) programs_.emplace_back(op, function, loops_);
  blocks_of(IndexProgram::kBlock);
}

bool IndexWalk::make_sums(const IndexMap& map) {
  for (size_t d = 0; d < map.functions.size(); ++d) {
    std::optional<IndexSum> sum = shape::as_sum(map.functions[d], map.loops);
    if (!sum) return false;
    sum->factors.resize(loops_.size());
    // No sum reaches 2^62.
    const int64_t extent = std::min(map.extents[d], int64_t{1} << 62);
    dims_.push_back({std::move(*sum), extent, strides_[d], {}, {}, {}});
  }
  return true;
}

bool IndexWalk::has_table(int loop) const {
  return std::ranges::any_of(dims_, [&](const Dim& dim) { return dim.sum.table_of(loop); });
}

// Blocks have all of the last loops, as far as there are few elements in them, and a part of the
// loop before these, which must be linear for that.
void IndexWalk::choose_blocks(bool by_rows) {
  int first = static_cast<int>(loops_.size());
  while (!by_rows && first > 0 && inner_ * loops_[first - 1] <= kTable) inner_ *= loops_[--first];
  // A part of a loop that is not linear would have other values than the next part.
  if (inner_ < kSmallTable && first > 0 && has_table(first - 1) &&
      inner_ * loops_[first - 1] <= std::min(kLongTable, elements_ / 4))
    inner_ *= loops_[--first];
  const DimVector elements = contiguous_strides(loops_);
  int64_t part = 1;
  if (first > 0 && !has_table(first - 1)) {
    split_ = first - 1;
    const int64_t most = by_rows ? kRowPart : std::max<int64_t>(1, kTable / inner_);
    part = std::min(loops_[split_], most);
  }
  for (int loop = 0; loop < first; ++loop) {
    const int64_t scale = loop == split_ ? part : 1;
    Outer outer{loop, (loops_[loop] + scale - 1) / scale, scale, elements[loop] * scale, {}, {}};
    for (const Dim& dim : dims_) {
      const IndexSum::Table* table = dim.sum.table_of(loop);
      outer.factors.push_back(dim.sum.factors[loop] * scale);
      outer.tables.push_back(table ? table->values.data() : nullptr);
    }
    pieces_ *= outer.extent;
    outer_.push_back(std::move(outer));
  }
  block_ = part * inner_;
  tail_ = block_;
  if (split_ >= 0) tail_ = (loops_[split_] - (outer_.back().extent - 1) * part) * inner_;
  if (by_rows) {
    for (const Dim& dim : dims_)
      step_ = wrapped_sum(step_, wrapped_product(dim.sum.factors[split_], dim.stride));
    return;
  }
  offsets_.assign(block_, 0);
  for (Dim& dim : dims_) add_inner_values(dim);
  if (block_ > 1) step_ = wrapped_sum(offsets_[1], -offsets_[0]);
  for (int64_t j = 1; j < block_; ++j)
    equally_spaced_ &= wrapped_sum(offsets_[j], -offsets_[j - 1]) == step_;
}

void IndexWalk::add_inner_values(Dim& dim) {
  std::vector<int64_t>& values = dim.inner;
  values = {0};
  for (int loop = static_cast<int>(loops_.size()); static_cast<int64_t>(values.size()) < block_;) {
    --loop;
    const int64_t extent = loop == split_ ? block_ / inner_ : loops_[loop];
    const IndexSum::Table* table = dim.sum.table_of(loop);
    const size_t inner = values.size();
    values.resize(inner * static_cast<size_t>(extent));
    for (int64_t i = extent - 1; i >= 0; --i) {
      const int64_t part = dim.sum.factors[loop] * i + (table ? table->values[i] : 0);
      for (size_t j = 0; j < inner; ++j)
        values[static_cast<size_t>(i) * inner + j] = values[j] + part;
    }
  }
  const auto range = [&](int64_t count) {
    const auto [low, high] = std::minmax_element(values.begin(), values.begin() + count);
    return ValueRange{*low, *high};
  };
  dim.full = range(block_);
  dim.tail = range(tail_);
  for (int64_t j = 0; j < block_; ++j)
    offsets_[j] = wrapped_sum(offsets_[j], wrapped_product(values[j], dim.stride));
}

// Whether different indices of the loop always mean different elements of the target: one of the
// target's indices depends on this loop alone, and is linear.
bool IndexWalk::is_independent(int loop) const {
  return std::ranges::any_of(dims_, [&](const Dim& dim) {
    if (!dim.sum.tables.empty() || dim.sum.factors[loop] == 0) return false;
    for (int other = 0; other < static_cast<int>(loops_.size()); ++other) {
      if (other != loop && loops_[other] > 1 && dim.sum.factors[other] != 0) return false;
    }
    return true;
  });
}

void IndexWalk::split_independent() {
  std::vector<Outer> groups, others;
  for (Outer& outer : outer_) {
    const bool groups_by = independent_ < kGroups && is_independent(outer.loop);
    if (groups_by) independent_ *= outer.extent;
    (groups_by ? groups : others).push_back(std::move(outer));
  }
  outer_ = std::move(groups);
  std::ranges::move(others, std::back_inserter(outer_));
}

// ---- the visit ----------------------------------------------------------------------------------

void IndexWalk::run_blocks(int64_t begin, int64_t end, UseBlock use, void* context) const {
  switch (kind_) {
    case Kind::Outside:
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t first = piece * block_;
        use(context, {IndexBlock::Outside, first, std::min(block_, elements_ - first)});
      }
      return;
    case Kind::Programs:
      return run_programs(begin, end, use, context);
    default:
      return run_sums(begin, end, use, context);
  }
}

// The indices of the outer loops, and for each of them the sums of the parts of the loops up to it.
class IndexWalk::Position {
 public:
  Position(const IndexWalk& walk, int64_t piece)
      : walk_(walk), dims_(walk.dims_.size()), at_(walk.outer_.size()) {
    bases_.resize((at_.size() + 1) * dims_);
    firsts_.resize(at_.size() + 1);
    for (size_t level = at_.size(); level-- > 0; piece /= walk.outer_[level].extent)
      at_[level] = piece % walk.outer_[level].extent;
    for (size_t d = 0; d < dims_; ++d) bases_[d] = walk.dims_[d].sum.constant;
    add_from(0);
  }

  void next() {
    for (size_t level = at_.size(); level-- > 0;) {
      if (++at_[level] < walk_.outer_[level].extent) return add_from(level);
      at_[level] = 0;
    }
  }

  const int64_t* bases() const { return bases_.data() + at_.size() * dims_; }
  int64_t first() const { return firsts_.back(); }
  bool is_tail() const {
    for (size_t level = 0; level < at_.size(); ++level) {
      const Outer& outer = walk_.outer_[level];
      if (outer.loop == walk_.split_) return at_[level] + 1 == outer.extent;
    }
    return false;
  }

 private:
  void add_from(size_t level) {
    for (; level < at_.size(); ++level) {
      const Outer& outer = walk_.outer_[level];
      const int64_t* from = bases_.data() + level * dims_;
      int64_t* const to = bases_.data() + (level + 1) * dims_;
      for (size_t d = 0; d < dims_; ++d) {
        to[d] = from[d] + outer.factors[d] * at_[level];
        if (outer.tables[d]) to[d] += outer.tables[d][at_[level]];
      }
      firsts_[level + 1] = firsts_[level] + outer.elements * at_[level];
    }
  }

  const IndexWalk& walk_;
  size_t dims_;
  DimVector at_;
  std::vector<int64_t> bases_, firsts_;
};

int64_t IndexWalk::first_of(int64_t piece) const {
  if (piece == pieces_) return elements_;
  return outer_.empty() ? piece * block_ : Position(*this, piece).first();
}

void IndexWalk::run_sums(int64_t begin, int64_t end, UseBlock use, void* context) const {
  if (begin >= end) return;
  Position position(*this, begin);
  for (int64_t piece = begin; piece < end; ++piece, position.next()) {
    const int64_t count = position.is_tail() ? tail_ : block_;
    const IndexBlock block{IndexBlock::Outside, position.first(), count};
    if (kind_ == Kind::Rows)
      visit_row(position.bases(), block, use, context);
    else
      visit_table(position.bases(), block, use, context);
  }
}

void IndexWalk::visit_row(const int64_t* bases, IndexBlock block, UseBlock use,
                          void* context) const {
  int64_t low = 0, high = block.count;
  for (size_t d = 0; d < dims_.size(); ++d)
    limit(bases[d], dims_[d].sum.factors[split_], dims_[d].extent, low, high);
  // Where nothing is inside, a limit may be anywhere.
  if (low >= high) return use(context, block);
  if (low > 0) use(context, {IndexBlock::Outside, block.first, low});
  IndexBlock inside{IndexBlock::Strided, block.first + low, high - low, 0, step_};
  for (size_t d = 0; d < dims_.size(); ++d) {
    const int64_t index = bases[d] + dims_[d].sum.factors[split_] * low;
    inside.offset = wrapped_sum(inside.offset, wrapped_product(index, dims_[d].stride));
  }
  use(context, inside);
  if (high < block.count)
    use(context, {IndexBlock::Outside, block.first + high, block.count - high});
}

void IndexWalk::visit_table(const int64_t* bases, IndexBlock block, UseBlock use,
                            void* context) const {
  bool all_inside = true, all_outside = false;
  for (size_t d = 0; d < dims_.size(); ++d) {
    const Dim& dim = dims_[d];
    const ValueRange& inner = block.count == block_ ? dim.full : dim.tail;
    const int64_t low = bases[d] + inner.low, high = bases[d] + inner.high;
    all_inside &= low >= 0 && high < dim.extent;
    all_outside |= high < 0 || low >= dim.extent;
    block.offset = wrapped_sum(block.offset, wrapped_product(bases[d], dim.stride));
  }
  if (all_outside) return use(context, {IndexBlock::Outside, block.first, block.count});
  if (all_inside) {
    block.kind = equally_spaced_ ? IndexBlock::Strided : IndexBlock::Table;
    if (equally_spaced_) block.offset = wrapped_sum(block.offset, offsets_[0]);
    block.step = step_;
    block.table = offsets_.data();
    return use(context, block);
  }
  std::array<int64_t, kListed> offsets;
  for (int64_t begin = 0; begin < block.count; begin += kListed) {
    const int64_t count = std::min(kListed, block.count - begin);
    std::array<uint8_t, kListed> outside{};
    for (size_t d = 0; d < dims_.size(); ++d) {
      const int64_t base = bases[d], extent = dims_[d].extent;
      const int64_t* const inner = dims_[d].inner.data() + begin;
      for (int64_t j = 0; j < count; ++j) outside[j] |= is_outside(base + inner[j], extent);
    }
    for (int64_t j = 0; j < count; ++j)
      offsets[j] =
          outside[j] ? IndexBlock::kOutside : wrapped_sum(block.offset, offsets_[begin + j]);
    use(context, {IndexBlock::Listed, block.first + begin, count, 0, 0, offsets.data()});
  }
}

void IndexWalk::run_programs(int64_t begin, int64_t end, UseBlock use, void* context) const {
  constexpr int64_t kBlock = IndexProgram::kBlock;
  IndexProgram::Scratch scratch;
  std::array<bool, kBlock> outside;
  std::array<bool, kBlock> overflows;
  std::array<int64_t, kBlock> offsets;
  for (int64_t piece = begin; piece < end; ++piece) {
    const int64_t first = piece * kBlock;
    const int64_t count = std::min(kBlock, elements_ - first);
    outside.fill(false);
    overflows.fill(false);
    offsets.fill(0);
    for (size_t d = 0; d < programs_.size(); ++d) {
      const int64_t* const indices = programs_[d].run(first, count, overflows.data(), scratch);
      for (int64_t j = 0; j < count; ++j) {
        outside[j] |= is_outside(indices[j], extents_[d]);
        offsets[j] = wrapped_sum(offsets[j], wrapped_product(indices[j], strides_[d]));
      }
    }
    for (int64_t j = 0; j < count; ++j)
      if (outside[j] || overflows[j]) offsets[j] = IndexBlock::kOutside;
    use(context, {IndexBlock::Listed, first, count, 0, 0, offsets.data()});
  }
}

}  // namespace treadle::cpu
