// Makes index plans: offsets of dimensions, offsets and bounds of index tensors.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/indexing/cpu/index_plan.h"

#include <atomic>

#include "aten/engine/overlap.h"
#include "aten/ops/clone.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/expand.h"
#include "aten/ops/indexing/cpu/entry_bounds.h"
#include "aten/ops/indexing/index_geometry.h"
#include "aten/ops/to.h"

namespace treadle::cpu {
namespace {

// Offsets of all elements of the dimensions `dims`, the last fastest; none where `t` is empty,
// whatever the sizes of these dimensions.
std::vector<int64_t> dim_offsets(const Tensor& t, IntList dims) {
  if (t.numel() == 0) return {};
  std::vector<int64_t> offsets = {0};
  for (const int64_t d : dims) {
    const int64_t size = t.size(d);
    const int64_t stride = t.stride(d);
    std::vector<int64_t> next;
    next.reserve(offsets.size() * size);
    for (const int64_t offset : offsets) {
      for (int64_t i = 0; i < size; ++i) next.push_back(offset + i * stride);
    }
    offsets = std::move(next);
  }
  return offsets;
}

// Sets where the dimensions before and after the indexed ones lie, the latter as rows of elements
// that lie side by side. There are as many offsets as elements of the result: none without an
// entry, whatever the tensor's size.
void set_places(IndexPlan& plan, const Tensor& t, IntList before, IntList after) {
  if (plan.index.size() == 0) return;
  plan.outer = dim_offsets(t, before);
  size_t rows = after.size();
  while (rows > 0 && (t.size(after[rows - 1]) == 1 || t.stride(after[rows - 1]) == plan.run)) {
    plan.run *= t.size(after[rows - 1]);
    --rows;
  }
  plan.inner = dim_offsets(t, after.slice(0, rows));
}

// The error is made in a separate function and thrown where it is noticed, because each frame
// between is one more to unwind.
[[gnu::cold, gnu::noinline]] Error out_of_bounds(std::string_view op, int64_t value, int64_t size,
                                                 NegativeIndex negative, int64_t dim) {
  const int64_t low = negative == NegativeIndex::FromTheEnd ? -size : 0;
  if (dim < 0) {
    return make_error<ErrorKind::Index>(OpName(op), "expected index in [", low, ", ", size,
                                        "), got index = ", value);
  }
  return make_error<ErrorKind::Index>(OpName(op), "expected index in [", low, ", ", size,
                                      ") for dimension ", dim, ", got index = ", value);
}

enum class Write : bool { Set, Add };

// Sets the offsets of the entries of `index`, or adds them to the present ones.
void put_offsets(std::string_view op, Offsets& offsets, const Tensor& index, int64_t size,
                 int64_t stride, NegativeIndex negative, int64_t dim, Write write) {
  const int64_t* values = index.data_as<int64_t>();
  const int64_t wrap = negative == NegativeIndex::FromTheEnd ? size : 0;
  int64_t* const to = offsets.data();
  parallel_for(offsets.size(), kGrain, [&](int64_t begin, int64_t end) {
    if (cpu::put_offsets(values + begin, end - begin, size, wrap, stride, write == Write::Add,
                         to + begin)) [[likely]]
      return;
    // The index may have changed since: some value is blamed in any case.
    int64_t i = begin;
    while (i + 1 < end && all_inside(values + i, 1, size, wrap)) ++i;
    throw out_of_bounds(op, values[i], size, negative, dim);
  });
}

Tensor as_int64(const Tensor& index) {
  const Tensor result =
      index.dtype() == ScalarType::Int64 ? index : aten::to(index, ScalarType::Int64);
  return result.is_contiguous() ? result : aten::contiguous(result);
}

}  // namespace

std::optional<DirectIndex> direct_index(std::string_view op, const Tensor& self,
                                        const Tensor& index, NegativeIndex negative, int64_t dim,
                                        PlanFor use, const Tensor& out) {
  const int64_t count = index.numel();
  if (self.dim() != 1 || index.dtype() != ScalarType::Int64 || !index.is_contiguous() ||
      count == 0 || meets(index, out))
    return std::nullopt;
  const uint64_t size = static_cast<uint64_t>(self.size(0));
  if (use == PlanFor::Writing && worth_sorting(count, self.size(0))) return std::nullopt;
  return DirectIndex{.values = index.data_as<int64_t>(),
                     .count = count,
                     .size = size,
                     .stride = static_cast<uint64_t>(self.stride(0)),
                     .wrap = negative == NegativeIndex::FromTheEnd ? size : 0,
                     .op = op,
                     .dim = dim};
}
IndexPlan plan_of(const DirectIndex& direct, const Tensor& index) {
  IndexPlan plan;
  plan.direct = direct;
  plan.index_values = index;
  return plan;
}

bool DirectIndex::is_inside() const {
  std::atomic<bool> inside = true;
  parallel_for(count, kGrain, [this, &inside](int64_t begin, int64_t end) {
    if (!is_inside(begin, end)) inside = false;
  });
  return inside;
}
bool DirectIndex::is_inside(int64_t begin, int64_t end) const {
  return all_inside(values + begin, end - begin, static_cast<int64_t>(size),
                    static_cast<int64_t>(wrap));
}

Error DirectIndex::out_of_bounds() const {
  int64_t e = 0;
  while (e + 1 < count && is_inside(e, e + 1)) ++e;
  return out_of_bounds(values[e]);
}

Error DirectIndex::out_of_bounds(int64_t value) const {
  return cpu::out_of_bounds(op, value, static_cast<int64_t>(size),
                            wrap ? NegativeIndex::FromTheEnd : NegativeIndex::Refused, dim);
}

IndexPlan advanced_plan(std::string_view op, const Tensor& self, TensorList indices, PlanFor use,
                        const Tensor& out) {
  if (self.dim() == 1) {
    const Tensor& index = indices[0];
    if (auto direct = direct_index(op, self, index, NegativeIndex::FromTheEnd, 0, use, out)) {
      if (use == PlanFor::Writing && !direct->is_inside()) throw direct->out_of_bounds();
      return plan_of(*direct, index);
    }
  }
  const shape::IndexGeometry g = shape::index_geometry(std::string(op).c_str(), self, indices);
  IndexPlan plan;
  plan.index = Offsets(checked_numel(g.index_sizes));
  bool first = true;
  for (const int64_t d : g.indexed_dims) {
    const Tensor& given = indices[d];
    const Tensor index = as_int64(
        given.sizes() == IntList(g.index_sizes) ? given : aten::expand(given, g.index_sizes));
    put_offsets(op, plan.index, index, self.size(d), self.stride(d), NegativeIndex::FromTheEnd, d,
                std::exchange(first, false) ? Write::Set : Write::Add);
  }
  set_places(plan, self, g.before_dims, g.after_dims);
  return plan;
}

IndexPlan dim_offsets_plan(std::string_view op, const Tensor& self, int64_t dim,
                           const Tensor& index, NegativeIndex negative) {
  IndexPlan plan;
  plan.index = Offsets(index.numel());
  const int64_t rank = self.dim();
  if (dim < 0) dim += std::max<int64_t>(rank, 1);
  put_offsets(op, plan.index, as_int64(index), rank ? self.size(dim) : 1,
              rank ? self.stride(dim) : 0, negative, -1, Write::Set);
  DimVector before, after;
  for (int64_t d = 0; d < rank; ++d) {
    if (d < dim) before.push_back(d);
    if (d > dim) after.push_back(d);
  }
  set_places(plan, self, before, after);
  return plan;
}

Tensor apart_from(const Tensor& t, const Tensor& written) {
  const Tensor result = aten::contiguous(t);
  return meets(result, written) ? aten::clone(result, MemoryFormat::Contiguous) : result;
}

Error Entries::out_of_bounds(std::string_view op, int64_t value, int64_t size) {
  return cpu::out_of_bounds(op, value, size, NegativeIndex::Refused, -1);
}

CheckedIndex checked_index(std::string_view op, const Tensor& index, int64_t size,
                           const Tensor& written) {
  CheckedIndex result(op, apart_from(as_int64(index), written), size);
  const Entries entries = result.entries();
  const int64_t* const values = entries.data();
  parallel_for(result.numel(), kGrain, [&](int64_t begin, int64_t end) {
    if (all_inside(values + begin, end - begin, size, 0)) [[likely]]
      return;
    for (int64_t i = begin; i < end; ++i) static_cast<void>(entries[i]);
  });
  return result;
}

Offsets own_entries(std::string_view op, const Tensor& index, int64_t size) {
  Offsets entries(index.numel());
  put_offsets(op, entries, as_int64(index), size, 1, NegativeIndex::Refused, -1, Write::Set);
  return entries;
}

}  // namespace treadle::cpu
