// Operators on sparse tensors that move entries and do not compute with them: orders of dimensions,
// slices and joins.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "aten/engine/layouts.h"
#include "aten/ops/_fill_.h"
#include "aten/ops/_random_range_.h"
#include "aten/ops/add.h"
#include "aten/ops/arange.h"
#include "aten/ops/cat.h"
#include "aten/ops/concat.h"
#include "aten/ops/concatenate.h"
#include "aten/ops/cumsum.h"
#include "aten/ops/div.h"
#include "aten/ops/empty_like.h"
#include "aten/ops/eq.h"
#include "aten/ops/expand.h"
#include "aten/ops/fill_.h"
#include "aten/ops/full.h"
#include "aten/ops/full_like.h"
#include "aten/ops/index_select.h"
#include "aten/ops/new_empty.h"
#include "aten/ops/new_zeros.h"
#include "aten/ops/nonzero.h"
#include "aten/ops/normal_.h"
#include "aten/ops/ones_like.h"
#include "aten/ops/permute.h"
#include "aten/ops/remainder.h"
#include "aten/ops/repeat_interleave.h"
#include "aten/ops/reshape.h"
#include "aten/ops/searchsorted.h"
#include "aten/ops/select.h"
#include "aten/ops/slice.h"
#include "aten/ops/slice_scatter.h"
#include "aten/ops/sort.h"
#include "aten/ops/sparse/contents.h"
#include "aten/ops/stack.h"
#include "aten/ops/sub.h"
#include "aten/ops/sum.h"
#include "aten/ops/t.h"
#include "aten/ops/to.h"
#include "aten/ops/transpose.h"
#include "aten/ops/unbind.h"
#include "aten/ops/uniform_.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/zero_.h"
#include "aten/ops/zeros.h"
#include "aten/ops/zeros_like.h"

namespace treadle::sparse {
namespace {

Tensor stacked(const std::vector<Tensor>& rows, const Coo& like) {
  return rows.empty() ? like.indices : aten::stack(rows);
}

// ---- orders of dimensions ----

// Coordinates in another order; compressed entries turn into coordinates and back.
Tensor permuted(const char* op, const Tensor& self, const DimVector& order) {
  const Coo coo = coo_of(op, self);
  const int64_t count = coo.sparse_dim();
  const std::vector<Tensor> rows = aten::unbind(coo.indices);
  std::vector<Tensor> sparse;
  DimVector dense{0}, sizes;
  bool in_order = true;
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t d = order[i];
    const bool is_sparse_place = static_cast<int64_t>(i) < count;
    check<ErrorKind::Runtime>((d < count) == is_sparse_place, OpName(op), "expected ", count,
                              " sparse dimensions to stay before ", self.dim() - count,
                              " dense ones, got ", order);
    if (d < count) {
      sparse.push_back(rows[static_cast<size_t>(d)]);
      in_order = in_order && d == static_cast<int64_t>(i);
    } else {
      dense.push_back(d - count + 1);
    }
    sizes.push_back(self.size(d));
  }
  return in_layout_of(op, self,
                      {stacked(sparse, coo), aten::permute(coo.values, dense), sizes,
                       coo.is_coalesced && in_order});
}

Tensor permute(const Tensor& self, IntList dims) {
  const DimVector order = wrap_dims("permute", OptionalIntList(dims), self.dim(), false);
  check<ErrorKind::Runtime>(static_cast<int64_t>(order.size()) == self.dim(), OpName("permute"),
                            "expected each dimension once, got ", dims);
  return permuted("permute", self, order);
}

Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  const auto a = static_cast<size_t>(wrap_dim("transpose", dim0, self.dim()));
  const auto b = static_cast<size_t>(wrap_dim("transpose", dim1, self.dim()));
  if (a != b && is_compressed(self.layout())) {
    // Rows become columns, and nothing is moved.
    Compressed c = compressed_of("transpose", self);
    const auto rows = static_cast<size_t>(c.batch_dims());
    if (std::min(a, b) == rows && std::max(a, b) == rows + 1) {
      static constexpr Layout kTurned[] = {Layout::Strided,   Layout::SparseCoo, Layout::SparseCsc,
                                           Layout::SparseCsr, Layout::SparseBsc, Layout::SparseBsr};
      c.layout = kTurned[static_cast<size_t>(c.layout)];
      if (has_blocks(c.layout))
        c.values = aten::transpose(c.values, c.batch_dims() + 1, c.batch_dims() + 2);
      std::swap(c.sizes[rows], c.sizes[rows + 1]);
      return tensor_of(c);
    }
  }
  DimVector order;
  for (int64_t d = 0; d < self.dim(); ++d) order.push_back(d);
  if (!order.empty()) std::swap(order[a], order[b]);
  return permuted("transpose", self, order);
}

Tensor t(const Tensor& self) {
  check<ErrorKind::Runtime>(self.dim() <= 2, OpName("t"), "expected a matrix, got shape ",
                            self.sizes());
  return self.dim() < 2 ? self : transpose(self, 0, 1);
}

Tensor unsqueeze(const Tensor& self, int64_t dim) {
  const int64_t at = wrap_dim("unsqueeze", dim, self.dim() + 1);
  Coo coo = coo_of("unsqueeze", self);
  coo.sizes.insert(static_cast<size_t>(at), 1);
  if (at > coo.sparse_dim()) {
    coo.values = aten::unsqueeze(coo.values, at - coo.sparse_dim() + 1);
  } else {
    std::vector<Tensor> rows = aten::unbind(coo.indices);
    rows.insert(rows.begin() + at,
                aten::zeros({coo.nnz()}, ScalarType::Int64, std::nullopt, self.device()));
    coo.indices = stacked(rows, coo);
  }
  return tensor_of(coo);
}

// Repeats entries along dimensions of one element, and along new ones in front.
Tensor expand(const Tensor& self, IntList size, bool) {
  const auto added = static_cast<int64_t>(size.size()) - self.dim();
  check<ErrorKind::Runtime>(added >= 0, OpName("expand"), "expected at least ", self.dim(),
                            " sizes, got ", size);
  Coo coo = coo_of("expand", self);
  const Tensor none = aten::zeros({coo.nnz()}, ScalarType::Int64, std::nullopt, self.device());
  std::vector<Tensor> rows = aten::unbind(coo.indices);
  rows.insert(rows.begin(), static_cast<size_t>(added), none);
  for (int64_t d = 0; d < added; ++d) coo.sizes.insert(0, 1);
  DimVector dense{-1};
  // The innermost first, so that new dimensions keep the order of entries.
  for (int64_t d = static_cast<int64_t>(size.size()); d-- > 0;) {
    const auto at = static_cast<size_t>(d);
    const int64_t wanted = size[at] == -1 && d >= added ? coo.sizes[at] : size[at];
    check<ErrorKind::Runtime>(wanted == coo.sizes[at] || (coo.sizes[at] == 1 && wanted >= 0),
                              OpName("expand"), "expected sizes that shape ", self.sizes(),
                              " broadcasts to, got ", size);
    const int64_t times = std::exchange(coo.sizes[at], wanted) == wanted ? 1 : wanted;
    const auto sparse = static_cast<int64_t>(rows.size());
    if (d >= sparse) {
      dense.insert(1, wanted);
      continue;
    }
    if (times == 1) continue;
    const int64_t nnz = rows[0].numel();
    const Tensor all =
        aten::arange(Scalar(times * nnz), ScalarType::Int64, std::nullopt, self.device());
    const Scalar n(std::max<int64_t>(nnz, 1));
    const Tensor entry = aten::remainder(all, n);
    for (Tensor& r : rows) r = aten::index_select(r, 0, entry);
    rows[at] = aten::div(all, n, std::string_view("floor"));
    coo.values = aten::index_select(coo.values, 0, entry);
    coo.is_coalesced = coo.is_coalesced && d < added;
  }
  dense[0] = coo.nnz();
  coo.values = aten::expand(coo.values, dense);
  coo.indices = stacked(rows, coo);
  return self.sizes() == IntList(coo.sizes) ? self : in_layout_of("expand", self, coo);
}

// ---- parts ----

Tensor rows_kept(const Tensor& mask) { return aten::reshape(aten::nonzero(mask), {-1}); }

Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  const int64_t d = wrap_dim("select", dim, self.dim());
  const int64_t size = self.size(d);
  check<ErrorKind::Index>(index >= -size && index < size, OpName("select"),
                          "expected an index of dimension ", d, " of size ", size, ", got ", index);
  if (index < 0) index += size;
  if (is_compressed(self.layout())) {
    Compressed c = compressed_of("select", self);
    if (d < c.batch_dims()) {
      for (Tensor* part : {&c.offsets, &c.indices, &c.values})
        *part = aten::select(*part, d, index);
      c.sizes.erase(static_cast<size_t>(d));
      return tensor_of(c);
    }
  }
  Coo coo = coo_of("select", self);
  coo.sizes.erase(static_cast<size_t>(d));
  if (d >= coo.sparse_dim()) {
    coo.values = aten::select(coo.values, d - coo.sparse_dim() + 1, index);
    return tensor_of(coo);
  }
  const Tensor kept = rows_kept(aten::eq(aten::select(coo.indices, 0, d), Scalar(index)));
  coo.values = aten::index_select(coo.values, 0, kept);
  if (coo.sparse_dim() == 1) return aten::sum(coo.values, IntList{0}, false, self.dtype());
  std::vector<Tensor> rows = aten::unbind(aten::index_select(coo.indices, 1, kept));
  rows.erase(rows.begin() + d);
  coo.indices = aten::stack(rows);
  return tensor_of(coo);
}

// Each index takes all entries of its part: a match of two lists of numbers.
Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  const int64_t d = wrap_dim("index_select", dim, self.dim());
  Coo coo = coo_of("index_select", self);
  check<ErrorKind::Index>(index.dim() <= 1, OpName("index_select"), "expected a vector, got ",
                          index.sizes());
  const Tensor wanted = aten::reshape(aten::to(index, ScalarType::Int64), {-1});
  if (d >= coo.sparse_dim()) {
    coo.values = aten::index_select(coo.values, d - coo.sparse_dim() + 1, wanted);
    coo.sizes[static_cast<size_t>(d)] = wanted.numel();
    return in_layout_of("index_select", self, coo);
  }
  // Checks the indices.
  const auto size = coo.sizes[static_cast<size_t>(d)];
  aten::index_select(aten::arange(Scalar(size), ScalarType::Int64, std::nullopt, self.device()), 0,
                     wanted);
  const auto [present, order] = aten::sort(aten::select(coo.indices, 0, d), true, 0, false);
  const Tensor starts = aten::searchsorted(present, wanted, false, false);
  const Tensor many = aten::sub(aten::searchsorted(present, wanted, false, true), starts);
  const Tensor numbers =
      aten::arange(Scalar(wanted.numel()), ScalarType::Int64, std::nullopt, self.device());
  const Tensor place = aten::repeat_interleave(numbers, many, 0);
  // The number of each match among those of its index.
  const Tensor before = aten::sub(aten::cumsum(many, 0), many);
  const Tensor within =
      aten::sub(aten::arange(Scalar(place.numel()), ScalarType::Int64, std::nullopt, self.device()),
                aten::index_select(before, 0, place));
  const Tensor entry =
      aten::index_select(order, 0, aten::add(aten::index_select(starts, 0, place), within));
  std::vector<Tensor> rows = aten::unbind(aten::index_select(coo.indices, 1, entry));
  rows[static_cast<size_t>(d)] = place;
  coo.indices = aten::stack(rows);
  coo.values = aten::index_select(coo.values, 0, entry);
  coo.sizes[static_cast<size_t>(d)] = wanted.numel();
  coo.is_coalesced = false;
  return in_layout_of("index_select", self, coalesced(coo));
}

Tensor slice(const Tensor& self, int64_t dim, std::optional<int64_t> start,
             std::optional<int64_t> end, int64_t step) {
  const int64_t d = wrap_dim("slice", dim, self.dim());
  // Which numbers a slice takes, a strided slice says.
  const Tensor numbers = aten::slice(
      aten::arange(Scalar(self.size(d)), ScalarType::Int64, std::nullopt, self.device()), 0, start,
      end, step);
  if (numbers.numel() == self.size(d)) return self;
  return sparse::index_select(self, d, numbers);
}

std::vector<Tensor> unbind(const Tensor& self, int64_t dim) {
  const int64_t d = wrap_dim("unbind", dim, self.dim());
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < self.size(d); ++i) parts.push_back(sparse::select(self, d, i));
  return parts;
}

// ---- joins ----

Tensor cat(TensorList tensors, int64_t dim) {
  const Coo first = coo_of("cat", tensors[0]);
  const auto rank = static_cast<int64_t>(first.sizes.size());
  const int64_t d = wrap_dim("cat", dim, rank);
  std::vector<Tensor> indices, values;
  DimVector sizes = first.sizes;
  int64_t start = 0;
  ScalarType dtype = first.values.dtype();
  for (size_t i = 0; i < tensors.size(); ++i) {
    check<ErrorKind::Runtime>(is_sparse(tensors[i]), OpName("cat"),
                              "expected sparse tensors, got a strided one at ", i);
    dtype = promote_types(dtype, tensors[i].dtype());
  }
  for (const Tensor& tensor : tensors) {
    const Coo coo = coo_of("cat", tensor);
    bool same = coo.sparse_dim() == first.sparse_dim() && coo.sizes.size() == first.sizes.size();
    for (int64_t k = 0; same && k < rank; ++k)
      same = k == d || coo.sizes[static_cast<size_t>(k)] == first.sizes[static_cast<size_t>(k)];
    check<ErrorKind::Runtime>(same, OpName("cat"), "expected the same shape except in dimension ",
                              d, ", got ", first.sizes, " and ", coo.sizes);
    if (d < coo.sparse_dim()) {
      std::vector<Tensor> rows = aten::unbind(coo.indices);
      rows[static_cast<size_t>(d)] = aten::add(rows[static_cast<size_t>(d)], Scalar(start));
      indices.push_back(aten::stack(rows));
    } else {
      indices.push_back(coo.indices);
    }
    values.push_back(aten::to(coo.values, dtype));
    start += coo.sizes[static_cast<size_t>(d)];
  }
  sizes[static_cast<size_t>(d)] = start;
  if (const int64_t inner = d - first.sparse_dim() + 1; inner > 0) {
    // An entry of one tensor is 0 in the places of the others.
    int64_t before = 0;
    for (Tensor& v : values) {
      DimVector whole(v.sizes());
      const int64_t count = std::exchange(whole[static_cast<size_t>(inner)], start);
      const Tensor zeros = aten::new_zeros(v, whole);
      v = aten::slice_scatter(zeros, v, inner, before, before + count);
      before += count;
    }
  }
  return in_layout_of("cat", tensors[0], {aten::cat(indices, 1), aten::cat(values), sizes, false});
}

Tensor stack(TensorList tensors, int64_t dim) {
  std::vector<Tensor> parts;
  for (const Tensor& tensor : tensors) parts.push_back(aten::unsqueeze(tensor, dim));
  return aten::cat(parts, wrap_dim("stack", dim, tensors[0].dim() + 1));
}

// ---- tensors without entries ----

// A tensor like `self` without entries; of another size by coordinates if the layout has blocks or
// needs more dimensions.
Tensor without_entries(const Tensor& self, IntList size, std::optional<ScalarType> dtype,
                       std::optional<Device> device) {
  const ScalarType of = dtype.value_or(self.dtype());
  const Device on = device.value_or(self.device());
  if (size != self.sizes()) {
    const bool by_lines =
        is_compressed(self.layout()) && !has_blocks(self.layout()) && size.size() >= 2;
    return sparse::without_entries("new_zeros", by_lines ? self.layout() : Layout::SparseCoo, size,
                                   of, on);
  }
  Coo coo = coo_of("zeros_like", self);
  DimVector values(IntList(coo.sizes).slice(static_cast<size_t>(coo.sparse_dim())));
  values.insert(0, 0);
  coo.indices = aten::zeros({coo.sparse_dim(), 0}, ScalarType::Int64, std::nullopt, on);
  coo.values = aten::zeros(values, of, std::nullopt, on);
  coo.is_coalesced = true;
  return in_layout_of("zeros_like", self, coo);
}

Tensor zeros_like(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                  std::optional<Device> device, std::optional<bool> pin_memory,
                  std::optional<MemoryFormat>) {
  if (layout && *layout == Layout::Strided)
    return aten::zeros(self.sizes(), dtype.value_or(self.dtype()), layout,
                       device.value_or(self.device()), pin_memory);
  require_layout("to", self, layout);
  return without_entries(self, self.sizes(), dtype, device);
}

// ---- tensors with the same entries ----

void require_compressed(const char* op, const Tensor& self) {
  check<ErrorKind::NotImplemented>(
      is_compressed(self.layout()), OpName(op),
      "expected strided tensors or compressed ones, got one of layout ", name_of(self.layout()),
      "; call to_dense()");
}

// The entries of a compressed tensor, with other values.
template <class F>
Tensor with_values(const char* op, const Tensor& self, std::optional<Layout> layout,
                   std::optional<Device> device, F&& values_like) {
  require_layout(op, self, layout);
  require_compressed(op, self);
  Compressed c = compressed_of(op, self);
  const Device on = device.value_or(self.device());
  c.offsets = aten::to(c.offsets, on, c.offsets.dtype(), false, /*copy=*/true);
  c.indices = aten::to(c.indices, on, c.indices.dtype(), false, /*copy=*/true);
  c.values = values_like(c.values);
  return tensor_of(c);
}

Tensor filled(const char* op, const Tensor& self, const Scalar& value,
              std::optional<ScalarType> dtype, std::optional<Layout> layout,
              std::optional<Device> device, std::optional<bool> pin_memory) {
  if (layout && *layout == Layout::Strided)
    return aten::full(self.sizes(), value, dtype.value_or(self.dtype()), layout,
                      device.value_or(self.device()), pin_memory);
  return with_values(op, self, layout, device, [&](const Tensor& values) {
    return aten::full_like(values, value, dtype, std::nullopt, device, pin_memory);
  });
}
Tensor full_like(const Tensor& self, const Scalar& value, std::optional<ScalarType> dtype,
                 std::optional<Layout> layout, std::optional<Device> device,
                 std::optional<bool> pin_memory, std::optional<MemoryFormat>) {
  return filled("full_like", self, value, dtype, layout, device, pin_memory);
}
Tensor ones_like(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                 std::optional<Device> device, std::optional<bool> pin_memory,
                 std::optional<MemoryFormat>) {
  return filled("ones_like", self, Scalar(1), dtype, layout, device, pin_memory);
}
Tensor empty_like(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                  std::optional<Device> device, std::optional<bool> pin_memory,
                  std::optional<MemoryFormat> format) {
  // Coordinates have no order that a program could count on, so there are none.
  if (!is_compressed(self.layout()) || (layout && *layout == Layout::Strided))
    return zeros_like(self, dtype, layout, device, pin_memory, format);
  return with_values("empty_like", self, layout, device, [&](const Tensor& values) {
    return aten::empty_like(values, dtype, std::nullopt, device, pin_memory);
  });
}

// ---- values that are replaced ----

// The values of a compressed tensor, for an operator that writes all of them. Coordinates are
// refused, as above.
Tensor written_values(const char* op, const Tensor& self) {
  require_compressed(op, self);
  return values_of(self);
}
Tensor fill(const Tensor& self, const Scalar& value) {
  aten::fill_(written_values("fill_", self), value);
  return self;
}
Tensor normal(const Tensor& self, double mean, double std, const Generator& generator) {
  aten::normal_(written_values("normal_", self), mean, std, generator);
  return self;
}
Tensor uniform(const Tensor& self, double from, double to, const Generator& generator) {
  aten::uniform_(written_values("uniform_", self), from, to, generator);
  return self;
}

Tensor random_range(const Tensor& self, int64_t from, int64_t high, const Generator& generator) {
  aten::_random_range_(written_values("random_", self), from, high, generator);
  return self;
}

Tensor new_zeros(const Tensor& self, IntList size, std::optional<ScalarType> dtype,
                 std::optional<Layout>, std::optional<Device> device, std::optional<bool>) {
  return without_entries(self, size, dtype, device);
}

Tensor zero(const Tensor& self) {
  write_layout_tensor("zero_", self, without_entries(self, self.sizes(), {}, {}));
  return self;
}

[[maybe_unused]] const Registration registered = [] {
  namespace ops = aten::ops;
  for (const Layout layout : kLayouts) {
    register_layout_kernel<ops::permute>(layout, &permute);
    register_layout_kernel<ops::transpose_int>(layout, &transpose);
    register_layout_kernel<ops::t>(layout, &t);
    register_layout_kernel<ops::unsqueeze>(layout, &unsqueeze);
    register_layout_kernel<ops::expand>(layout, &expand);
    register_layout_kernel<ops::select_int>(layout, &select);
    register_layout_kernel<ops::index_select>(layout, &index_select);
    register_layout_kernel<ops::slice_Tensor>(layout, &slice);
    register_layout_kernel<ops::unbind_int>(layout, &unbind);
    register_layout_kernel<ops::cat>(layout, &cat);
    register_layout_kernel<ops::concat>(layout, &cat);
    register_layout_kernel<ops::concatenate>(layout, &cat);
    register_layout_kernel<ops::stack>(layout, &stack);
    register_copies(layout);
    register_layout_kernel<ops::zeros_like>(layout, &zeros_like);
    register_layout_kernel<ops::empty_like>(layout, &empty_like);
    register_layout_kernel<ops::full_like>(layout, &full_like);
    register_layout_kernel<ops::ones_like>(layout, &ones_like);
    register_layout_kernel<ops::new_zeros>(layout, &new_zeros);
    register_layout_kernel<ops::new_empty>(layout, &new_zeros);
    register_layout_kernel<ops::zero_>(layout, &zero);
    register_layout_kernel<ops::_fill_>(layout, &fill);
    register_layout_kernel<ops::normal_>(layout, &normal);
    register_layout_kernel<ops::uniform_>(layout, &uniform);
    register_layout_kernel<ops::_random_range_>(layout, &random_range);
  }
  return Registration();
}();

}  // namespace

Tensor without_entries(const char* op, Layout layout, IntList size, ScalarType dtype,
                       Device device) {
  const bool by_lines = is_compressed(layout) && !has_blocks(layout);
  check<ErrorKind::NotImplemented>(by_lines || layout == Layout::SparseCoo, OpName(op),
                                   "expected the layout strided, sparse_coo, sparse_csr or "
                                   "sparse_csc, got ",
                                   name_of(layout));
  const auto dims = static_cast<int64_t>(size.size());
  const Coo none{aten::zeros({dims, 0}, ScalarType::Int64, std::nullopt, device),
                 aten::zeros({0}, dtype, std::nullopt, device), DimVector(size), true};
  return by_lines ? compressed_tensor(op, none, layout, std::nullopt) : tensor_of(none);
}

}  // namespace treadle::sparse
