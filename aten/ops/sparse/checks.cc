// Checks of the indices of sparse tensors, when a tensor is made of parts.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "aten/ops/contiguous.h"
#include "aten/ops/sparse/contents.h"
#include "aten/ops/to.h"

namespace treadle::sparse {
namespace {

// The numbers of an index tensor, on the CPU.
Tensor readable(const Tensor& t) { return aten::contiguous(aten::to(t, kCPU, ScalarType::Int64)); }

bool is_index(const Tensor& t) {
  return t.is_strided() && (t.dtype() == ScalarType::Int64 || t.dtype() == ScalarType::Int32);
}

}  // namespace

void check_coo(const char* op, IntList sizes, const LayoutContents& contents) {
  const Tensor &indices = contents.parts[0], &values = contents.parts[1];
  check<ErrorKind::Runtime>(indices.dim() == 2 && indices.is_strided(), OpName(op),
                            "expected indices of shape (sparse dims, nnz), got ", indices.sizes());
  check<ErrorKind::Runtime>(indices.dtype() == ScalarType::Int64, OpName(op),
                            "expected int64 indices, got ", indices.dtype());
  check<ErrorKind::Runtime>(values.dim() >= 1 && values.is_strided(), OpName(op),
                            "expected values of shape (nnz, dense dims), got ", values.sizes());
  check<ErrorKind::Runtime>(indices.device() == values.device(), OpName(op),
                            "expected indices and values on one device, got ", indices.device(),
                            " and ", values.device());
  const int64_t dims = indices.size(0), nnz = indices.size(1);
  check<ErrorKind::Runtime>(nnz == values.size(0), OpName(op),
                            "expected as many values as indices, got ", nnz,
                            " columns of indices and ", values.size(0), " values");
  for (const int64_t n : sizes)
    check<ErrorKind::Runtime>(n >= 0, OpName(op), "expected sizes >= 0, got ", sizes);
  const IntList dense = values.sizes().slice(1);
  check<ErrorKind::Runtime>(static_cast<int64_t>(sizes.size()) == dims + values.dim() - 1,
                            OpName(op), "expected a size of ", dims, " sparse and ",
                            values.dim() - 1, " dense dimensions, got ", sizes);
  if (sizes.slice(static_cast<size_t>(dims)) != dense) {
    DimVector wanted(sizes.slice(static_cast<size_t>(dims)));
    wanted.insert(0, nnz);
    fail<ErrorKind::Runtime>(OpName(op), "expected values of shape ", wanted, " for size ", sizes,
                             ", got ", values.sizes());
  }
  checked_numel(sizes);
  if (indices.is_meta()) return;
  const Tensor read = readable(indices);
  for (int64_t d = 0; d < dims; ++d) {
    const int64_t* const row = read.data_as<int64_t>() + d * nnz;
    const int64_t size = sizes[static_cast<size_t>(d)];
    bool outside = false;
    for (int64_t i = 0; i < nnz; ++i)
      outside |= static_cast<uint64_t>(row[i]) >= static_cast<uint64_t>(size);
    if (!outside) continue;
    const int64_t* const wrong =
        std::find_if(row, row + nnz, [=](int64_t i) { return i < 0 || i >= size; });
    check<ErrorKind::Runtime>(wrong == row + nnz, OpName(op), "expected indices of dimension ", d,
                              " from 0 to ", size - 1, ", got ", *wrong);
  }
}

void check_compressed(const char* op, Layout layout, IntList sizes,
                      const LayoutContents& contents) {
  const Tensor &offsets = contents.parts[0], &indices = contents.parts[1];
  const Tensor& values = contents.parts[2];
  const char* const lines = is_by_rows(layout) ? "rows" : "columns";
  const char* const others = is_by_rows(layout) ? "columns" : "rows";
  check<ErrorKind::Runtime>(
      is_index(offsets) && is_index(indices) && offsets.dtype() == indices.dtype(), OpName(op),
      "expected indices of one dtype, int64 or int32, got ", offsets.dtype(), " and ",
      indices.dtype());
  check<ErrorKind::Runtime>(values.is_strided() && values.device() == offsets.device() &&
                                values.device() == indices.device(),
                            OpName(op), "expected strided indices and values on one device");
  const int64_t batches = offsets.dim() - 1;
  const int64_t block_dims = has_blocks(layout) ? 2 : 0;
  check<ErrorKind::Runtime>(
      batches >= 0 && indices.dim() == batches + 1 && values.dim() >= batches + 1 + block_dims,
      OpName(op), "expected indices and values of ", name_of(layout), ", got shapes ",
      offsets.sizes(), ", ", indices.sizes(), " and ", values.sizes());
  const int64_t dense = values.dim() - 1 - batches - block_dims;
  check<ErrorKind::Runtime>(static_cast<int64_t>(sizes.size()) == batches + 2 + dense, OpName(op),
                            "expected a size of ", batches + 2 + dense, " dimensions, got ", sizes);
  for (const int64_t n : sizes)
    check<ErrorKind::Runtime>(n >= 0, OpName(op), "expected sizes >= 0, got ", sizes);
  checked_numel(sizes);
  const auto at = static_cast<size_t>(batches);
  int64_t height = 1, width = 1;
  if (block_dims) {
    height = values.size(batches + 1), width = values.size(batches + 2);
    check<ErrorKind::Runtime>(
        height > 0 && width > 0 && sizes[at] % height == 0 && sizes[at + 1] % width == 0,
        OpName(op), "expected blocks that divide the size ", sizes, ", got ", height, " by ",
        width);
  }
  const int64_t rows = sizes[at] / height, columns = sizes[at + 1] / width;
  const int64_t n = is_by_rows(layout) ? rows : columns, m = is_by_rows(layout) ? columns : rows;
  const int64_t nnz = indices.size(-1);
  const IntList batch = sizes.slice(0, at);
  check<ErrorKind::Runtime>(offsets.size(-1) == n + 1 && offsets.sizes().slice(0, at) == batch,
                            OpName(op), "expected ", n + 1, " offsets of ", lines,
                            " for each matrix of size ", sizes, ", got shape ", offsets.sizes());
  check<ErrorKind::Runtime>(values.size(batches) == nnz && indices.sizes().slice(0, at) == batch &&
                                values.sizes().slice(0, at) == batch &&
                                values.sizes().slice(static_cast<size_t>(
                                    batches + 1 + block_dims)) == sizes.slice(at + 2),
                            OpName(op), "expected indices and values that fit the size ", sizes,
                            ", got shapes ", indices.sizes(), " and ", values.sizes());
  if (offsets.is_meta()) return;
  const Tensor starts = readable(offsets), found = readable(indices);
  int64_t matrices = 1;
  for (const int64_t b : batch) matrices *= b;
  for (int64_t b = 0; b < matrices; ++b) {
    const int64_t* const start = starts.data_as<int64_t>() + b * (n + 1);
    const int64_t* const index = found.data_as<int64_t>() + b * nnz;
    check<ErrorKind::Runtime>(start[0] == 0 && start[n] == nnz, OpName(op), "expected offsets of ",
                              lines, " from 0 to ", nnz, ", got ", start[0], " to ", start[n]);
    for (int64_t r = 0; r < n; ++r) {
      if (start[r] > start[r + 1] || start[r + 1] > nnz) [[unlikely]]
        fail<ErrorKind::Runtime>(OpName(op), "expected offsets of ", lines,
                                 " that do not fall, got ", start[r], " and ", start[r + 1]);
      int64_t last = -1;
      for (int64_t i = start[r]; i < start[r + 1]; ++i) {
        if (index[i] <= last || index[i] >= m) [[unlikely]]
          fail<ErrorKind::Runtime>(
              OpName(op), "expected ", others, " in order, each once, from 0 to ", m - 1, ", got ",
              index[i], last < 0 ? "" : " behind ", last < 0 ? "" : std::to_string(last));
        last = index[i];
      }
    }
  }
}

namespace {

template <Layout layout>
void check_of(const char* op, IntList sizes, const LayoutContents& contents) {
  check_compressed(op, layout, sizes, contents);
}

[[maybe_unused]] const bool described = [] {
  static const LayoutInfo coo{{"indices", "values"}, {"is_coalesced"}, 1, &check_coo};
  describe_layout(Layout::SparseCoo, coo);
  static const std::vector<std::string> rows{"crow_indices", "col_indices", "values"};
  static const std::vector<std::string> columns{"ccol_indices", "row_indices", "values"};
  static const LayoutInfo csr{rows, {}, 2, &check_of<Layout::SparseCsr>};
  static const LayoutInfo csc{columns, {}, 2, &check_of<Layout::SparseCsc>};
  static const LayoutInfo bsr{rows, {}, 2, &check_of<Layout::SparseBsr>};
  static const LayoutInfo bsc{columns, {}, 2, &check_of<Layout::SparseBsc>};
  describe_layout(Layout::SparseCsr, csr);
  describe_layout(Layout::SparseCsc, csc);
  describe_layout(Layout::SparseBsr, bsr);
  describe_layout(Layout::SparseBsc, bsc);
  return true;
}();

}  // namespace
}  // namespace treadle::sparse
