// Sparse tensors taken apart and put together.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/sparse/contents.h"

#include "aten/ops/_coo_groups.h"
#include "aten/ops/_csr_coordinates.h"
#include "aten/ops/_csr_dense.h"
#include "aten/ops/_csr_transposed.h"
#include "aten/ops/_row_offsets.h"
#include "aten/ops/add.h"
#include "aten/ops/arange.h"
#include "aten/ops/cat.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/div.h"
#include "aten/ops/expand.h"
#include "aten/ops/flatten.h"
#include "aten/ops/full.h"
#include "aten/ops/index.h"
#include "aten/ops/index_add.h"
#include "aten/ops/index_select.h"
#include "aten/ops/mul.h"
#include "aten/ops/permute.h"
#include "aten/ops/remainder.h"
#include "aten/ops/reshape.h"
#include "aten/ops/select.h"
#include "aten/ops/slice.h"
#include "aten/ops/stack.h"
#include "aten/ops/sub.h"
#include "aten/ops/to.h"
#include "aten/ops/transpose.h"
#include "aten/ops/unbind.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/view.h"
#include "aten/ops/zeros.h"

namespace treadle::sparse {
namespace {

Tensor int64_of(const Tensor& t) {
  return t.dtype() == ScalarType::Int64 ? t : aten::to(t, ScalarType::Int64);
}

Tensor row(const Tensor& indices, int64_t d) { return aten::select(indices, 0, d); }

int64_t count_of(IntList sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return n;
}

DimVector joined(std::initializer_list<IntList> lists) {
  DimVector all;
  for (const IntList list : lists)
    for (const int64_t n : list) all.push_back(n);
  return all;
}

// The indices of entries whose keys number the places of dimensions of these sizes.
std::vector<Tensor> unraveled(Tensor keys, IntList sizes) {
  std::vector<Tensor> rows(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    const Scalar n(std::max<int64_t>(sizes[d], 1));
    rows[d] = aten::remainder(keys, n);
    keys = aten::div(keys, n, std::string_view("floor"));
  }
  return rows;
}

Tensor raveled(const Tensor& indices, IntList sizes) {
  if (sizes.empty())
    return aten::zeros({indices.size(1)}, ScalarType::Int64, std::nullopt, indices.device());
  Tensor keys = row(indices, 0);
  for (size_t d = 1; d < sizes.size(); ++d)
    keys = aten::add(row(indices, static_cast<int64_t>(d)), keys, Scalar(sizes[d]));
  return keys;
}

}  // namespace

// ---- parts of the computation ----

Tensor picked(const Tensor& dense, const Tensor& indices) {
  const int64_t dims = indices.size(0), count = indices.size(1);
  const IntList sizes = dense.sizes();
  if (dims == 0) return aten::expand(aten::unsqueeze(dense, 0), joined({{count}, sizes}));
  const IntList sparse = sizes.slice(0, static_cast<size_t>(dims));
  const IntList rest = sizes.slice(static_cast<size_t>(dims));
  const Tensor parts = aten::reshape(dense, joined({{count_of(sparse)}, rest}));
  return aten::index_select(parts, 0, raveled(indices, sparse));
}

Tensor added(const Tensor& dense, const Tensor& indices, const Tensor& values) {
  const IntList sizes = dense.sizes();
  const auto dims = static_cast<size_t>(indices.size(0));
  const IntList sparse = sizes.slice(0, dims);
  const Tensor parts = aten::reshape(dense, joined({{count_of(sparse)}, sizes.slice(dims)}));
  return aten::reshape(aten::index_add(parts, 0, raveled(indices, sparse), values), sizes);
}

void add_at(const Tensor& dense, const Tensor& indices, const Tensor& values,
            const Scalar& factor) {
  const auto dims = static_cast<size_t>(indices.size(0));
  const IntList sparse = dense.sizes().slice(0, dims);
  const Tensor parts = aten::view(dense, joined({{count_of(sparse)}, dense.sizes().slice(dims)}));
  aten::index_add_(parts, 0, raveled(indices, sparse), values, factor);
}

Tensor grouped(const Tensor& values, const Tensor& groups, int64_t count) {
  const DimVector sizes = joined({{count}, values.sizes().slice(1)});
  const Tensor sums = aten::zeros(sizes, values.dtype(), std::nullopt, values.device());
  return aten::index_add_(sums, 0, groups, values);
}

// ---- by coordinates ----

Coo coo_of(const char* op, const Tensor& t) {
  if (is_coo(t)) {
    const auto contents = contents_of(t);
    return {contents->parts[0], contents->parts[1], DimVector(t.sizes()), contents->fields[0] != 0};
  }
  return expanded(compressed_of(op, t));
}

Tensor tensor_of(const Coo& coo) {
  return layout_tensor(Layout::SparseCoo, coo.sizes,
                       {{coo.indices, coo.values}, {coo.is_coalesced || coo.nnz() < 2}});
}

Coo coalesced(const Coo& coo) {
  if (coo.is_coalesced || coo.nnz() < 2) return coo;
  const auto [indices, groups] = aten::_coo_groups(coo.indices, coo.sparse_sizes());
  return {indices, grouped(coo.values, groups, indices.size(1)), coo.sizes, true};
}

// ---- by rows and columns ----

Compressed compressed_of(const char* op, const Tensor& t) {
  check<ErrorKind::NotImplemented>(is_compressed(t.layout()), OpName(op),
                                   "expected a sparse tensor, got a ", name_of(t.layout()),
                                   " one of shape ", t.sizes());
  const auto contents = contents_of(t);
  return {t.layout(), contents->parts[0], contents->parts[1], contents->parts[2],
          DimVector(t.sizes())};
}

Tensor tensor_of(const Compressed& c) {
  return layout_tensor(c.layout, c.sizes, {{c.offsets, c.indices, c.values}, {}});
}

namespace {

// The entries of all matrices of the batches as those of one, whose lines are theirs one after
// another.
Compressed joined_batches(const Compressed& c) {
  const int64_t batches = c.batch_dims();
  const Tensor offsets = int64_of(c.offsets), indices = int64_of(c.indices);
  if (batches == 0) return {c.layout, offsets, indices, c.values, {}};
  const int64_t nnz = indices.size(-1), lines = offsets.size(-1) - 1;
  const int64_t matrices = count_of(IntList(c.sizes).slice(0, static_cast<size_t>(batches)));
  const Device device = offsets.device();
  const Tensor numbers = aten::arange(Scalar(matrices), ScalarType::Int64, std::nullopt, device);
  const Tensor starts =
      aten::add(aten::slice(aten::reshape(offsets, {matrices, lines + 1}), 1, 0, lines),
                aten::unsqueeze(aten::mul(numbers, Scalar(nnz)), 1));
  const Tensor end =
      aten::full({1}, Scalar(matrices * nnz), ScalarType::Int64, std::nullopt, device);
  return {c.layout,
          aten::cat({aten::reshape(starts, {-1}), end}),
          aten::flatten(indices),
          aten::flatten(c.values, 0, batches),
          {}};
}

}  // namespace

Coo expanded(const Compressed& c) {
  const int64_t batches = c.batch_dims();
  const IntList sizes = c.sizes;
  const IntList batch_sizes = sizes.slice(0, static_cast<size_t>(batches));
  const bool by_rows = is_by_rows(c.layout);
  const Compressed one = joined_batches(c);
  const Tensor coordinates =
      aten::_csr_coordinates(one.offsets, one.indices, batches > 0 || by_rows);
  if (batches == 0 && !has_blocks(c.layout))
    return {coordinates, c.values, c.sizes, c.layout == Layout::SparseCsr};
  Tensor line = row(coordinates, 0), plain = row(coordinates, 1);
  if (batches == 0 && !by_rows) std::swap(line, plain);
  const int64_t count = line.numel(), lines = c.offsets.size(-1) - 1;  // in each batch
  std::vector<Tensor> rows;
  if (batches > 0) {
    const Scalar n(std::max<int64_t>(lines, 1));
    rows = unraveled(aten::div(line, n, std::string_view("floor")), batch_sizes);
    line = aten::remainder(line, n);
  }
  Tensor values = one.values;
  bool in_order = c.layout == Layout::SparseCsr;
  if (has_blocks(c.layout)) {
    const int64_t height = values.size(1), width = values.size(2), area = height * width;
    const auto options = [&](int64_t n) {
      return aten::arange(n, ScalarType::Int64, std::nullopt, line.device());
    };
    // Line and plain index of each element of a block, (nnz, height, width).
    const Tensor down = aten::reshape(options(height), {1, height, 1});
    const Tensor across = aten::reshape(options(width), {1, 1, width});
    const auto spread = [&](const Tensor& block, const Tensor& inside, int64_t size) {
      const Tensor start = aten::reshape(aten::mul(block, Scalar(size)), {count, 1, 1});
      return aten::reshape(aten::expand(aten::add(start, inside), {count, height, width}),
                           {count * area});
    };
    for (Tensor& r : rows)
      r = aten::reshape(aten::expand(aten::unsqueeze(r, 1), {count, area}), {count * area});
    line = by_rows ? spread(line, down, height) : spread(line, across, width);
    plain = by_rows ? spread(plain, across, width) : spread(plain, down, height);
    values = aten::flatten(values, 0, 2);
    in_order = area == 1 && by_rows;
  }
  rows.push_back(by_rows ? line : plain);
  rows.push_back(by_rows ? plain : line);
  return {aten::stack(rows), values, c.sizes, in_order};
}

Tensor dense_of(const Compressed& c) {
  const int64_t batches = c.batch_dims();
  const bool by_rows = is_by_rows(c.layout), blocked = has_blocks(c.layout);
  const auto at = static_cast<size_t>(batches);
  const int64_t height = blocked ? c.values.size(batches + 1) : 1;
  const int64_t width = blocked ? c.values.size(batches + 2) : 1;
  const int64_t n = c.sizes[at] / height, m = c.sizes[at + 1] / width;
  const Compressed one = joined_batches(c);
  Tensor dense = aten::_csr_dense(one.values, one.offsets, one.indices, by_rows ? m : n,
                                  batches > 0 || by_rows);
  if (batches == 0 && !blocked) return dense;
  const int64_t matrices = count_of(IntList(c.sizes).slice(0, at));
  const bool turned = batches > 0 && !by_rows;
  dense = aten::reshape(dense, {matrices, turned ? m : n, turned ? n : m, height, width, -1});
  if (turned) dense = aten::transpose(dense, 1, 2);
  if (blocked) dense = aten::transpose(dense, 2, 3);
  return aten::contiguous(aten::reshape(dense, c.sizes));
}

namespace {

// Entries in order (batches, lines, plain) as a compressed tensor.
Compressed compressed_entries(const char* op, Layout layout, const Tensor& indices,
                              const Tensor& values, IntList batch_sizes, int64_t lines) {
  const auto batches = static_cast<int64_t>(batch_sizes.size());
  const int64_t matrices = count_of(batch_sizes), nnz = indices.size(1);
  Tensor line = row(indices, batches);
  if (batches > 0) {
    const Tensor batch = raveled(aten::slice(indices, 0, 0, batches), batch_sizes);
    line = aten::add(aten::mul(batch, Scalar(lines)), line);
  }
  Tensor offsets = aten::_row_offsets(line, matrices * lines);
  Tensor plain = row(indices, batches + 1);
  Tensor kept = values;
  if (batches > 0) {
    const int64_t each = matrices > 0 ? nnz / matrices : 0;
    const Tensor starts =
        aten::reshape(aten::slice(offsets, 0, 0, matrices * lines), {matrices, lines});
    const Tensor ends = lines > 0 ? aten::slice(offsets, 0, lines, std::nullopt, lines)
                                  : aten::zeros({matrices}, ScalarType::Int64);
    const Tensor all = aten::cat({starts, aten::unsqueeze(ends, 1)}, 1);
    offsets = aten::sub(all, aten::slice(all, 1, 0, 1));
    const Tensor last =
        aten::to(aten::contiguous(aten::select(offsets, 1, lines)), kCPU, ScalarType::Int64);
    for (int64_t b = 0; b < matrices; ++b) {
      const int64_t count = last.data_as<int64_t>()[b];
      check<ErrorKind::Runtime>(count == each, OpName(op),
                                "expected as many entries in each matrix of the batch, got ", each,
                                " and ", count);
    }
    offsets = aten::reshape(offsets, joined({batch_sizes, {lines + 1}}));
    plain = aten::reshape(plain, joined({batch_sizes, {each}}));
    kept = aten::reshape(kept, joined({batch_sizes, {each}, values.sizes().slice(1)}));
  }
  return {layout, offsets, aten::contiguous(plain), kept, {}};
}

}  // namespace

Tensor compressed_tensor(const char* op, const Coo& from, Layout layout, OptionalIntList blocks) {
  const bool blocked = has_blocks(layout), by_rows = is_by_rows(layout);
  const int64_t dims = from.sparse_dim();
  check<ErrorKind::Runtime>(dims >= 2, OpName(op),
                            "expected a tensor of 2 or more sparse dimensions, got shape ",
                            from.sizes, " with ", dims, " of them");
  check<ErrorKind::Runtime>(blocked == blocks.has_value(), OpName(op),
                            blocked ? "expected the blocksize of a tensor of blocks, got none"
                                    : "expected no blocksize for a tensor without blocks, got one");
  const auto batches = static_cast<size_t>(dims) - 2;
  const IntList batch_sizes = IntList(from.sizes).slice(0, batches);
  int64_t height = 1, width = 1;
  const int64_t n = from.sizes[batches], m = from.sizes[batches + 1];
  if (blocked) {
    check<ErrorKind::Runtime>(blocks->size() == 2, OpName(op),
                              "expected a blocksize of 2 numbers, got ", *blocks);
    height = (*blocks)[0], width = (*blocks)[1];
    check<ErrorKind::Runtime>(height > 0 && width > 0 && n % height == 0 && m % width == 0,
                              OpName(op), "expected blocks that divide a matrix of ", n, " by ", m,
                              ", got blocksize ", *blocks);
  }
  if (!blocked && by_rows && from.is_coalesced) {
    Compressed made = compressed_entries(op, layout, from.indices, from.values, batch_sizes, n);
    made.sizes = from.sizes;
    return tensor_of(made);
  }
  if (!blocked && from.is_coalesced && batches == 0) {
    // Entries by rows take the way without a sort.
    const Matrix turned = transposed(by_rows_of(from));
    return tensor_of(Compressed{layout, turned.offsets, turned.columns, turned.values, from.sizes});
  }
  // The lines that are compressed come first.
  std::vector<Tensor> rows = aten::unbind(from.indices);
  Tensor inside;
  if (blocked) {
    const auto split = [](Tensor& index, int64_t size) {
      const Tensor rest = aten::remainder(index, Scalar(size));
      index = aten::div(index, Scalar(size), std::string_view("floor"));
      return rest;
    };
    const Tensor down = split(rows[batches], height), across = split(rows[batches + 1], width);
    inside = aten::add(aten::mul(down, Scalar(width)), across);
  }
  if (!by_rows) std::swap(rows[batches], rows[batches + 1]);
  const int64_t lines = by_rows ? n / height : m / width, others = by_rows ? m / width : n / height;
  const Tensor indices = aten::stack(rows);
  Compressed made{};
  if (!blocked) {
    const Coo entries = coalesced(
        {indices, from.values,
         joined({batch_sizes, {lines, others}, IntList(from.sizes).slice(batches + 2)}), false});
    made = compressed_entries(op, layout, entries.indices, entries.values, batch_sizes, lines);
  } else {
    const DimVector sparse = joined({batch_sizes, {lines, others}});
    const auto [unique, groups] = aten::_coo_groups(indices, sparse);
    const int64_t area = height * width, count = unique.size(1);
    const Tensor place = aten::add(aten::mul(groups, Scalar(area)), inside);
    const Tensor values =
        aten::reshape(grouped(from.values, place, count * area),
                      joined({{count, height, width}, from.values.sizes().slice(1)}));
    made = compressed_entries(op, layout, unique, values, batch_sizes, lines);
  }
  made.sizes = from.sizes;
  return tensor_of(made);
}

Matrix by_rows_of(const Coo& coo) {
  const int64_t rows = coo.sizes[0];
  return {aten::_row_offsets(row(coo.indices, 0), rows), aten::contiguous(row(coo.indices, 1)),
          coo.values, rows, coo.sizes[1]};
}

Matrix matrix_of(const char* op, const Tensor& t) {
  check<ErrorKind::Runtime>(t.dim() == 2, OpName(op), "expected a sparse matrix, got shape ",
                            t.sizes());
  const int64_t rows = t.size(0), width = t.size(1);
  if (t.layout() == Layout::SparseCsr) {
    const Compressed c = compressed_of(op, t);
    if (c.dense_dims() == 0)
      return {int64_of(c.offsets), int64_of(c.indices), c.values, rows, width};
  }
  if (t.layout() == Layout::SparseCsc) {
    const Compressed c = compressed_of(op, t);
    if (c.dense_dims() == 0)
      return transposed({int64_of(c.offsets), int64_of(c.indices), c.values, width, rows});
  }
  const Coo coo = coalesced(coo_of(op, t));
  check<ErrorKind::Runtime>(coo.sparse_dim() == 2, OpName(op),
                            "expected sparse tensors without dense dimensions, got ",
                            t.dim() - coo.sparse_dim());
  return by_rows_of(coo);
}

Matrix transposed(const Matrix& m) {
  const auto [offsets, rows, values] =
      aten::_csr_transposed(m.values, m.offsets, m.columns, m.width);
  return {offsets, rows, values, m.width, m.rows};
}

Tensor in_layout_of(const char* op, const Tensor& like, const Coo& coo) {
  if (is_coo(like)) return tensor_of(coo);
  if (!has_blocks(like.layout())) return compressed_tensor(op, coo, like.layout(), std::nullopt);
  const Compressed c = compressed_of(op, like);
  const int64_t first = c.batch_dims() + 1;
  const DimVector blocks{c.values.size(first), c.values.size(first + 1)};
  return compressed_tensor(op, coo, like.layout(), OptionalIntList(blocks));
}

}  // namespace treadle::sparse
