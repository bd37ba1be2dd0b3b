// Sparse tensors taken apart: what the operators of this family compute with.
//
//   Coo            entries by coordinates: indices (sparse dims, nnz), values (nnz, dense dims)
//   Compressed     entries by rows (csr, bsr) or by columns (csc, bsc), with dimensions of batches
//                  in front; bsr and bsc have blocks for entries
//   Matrix         a matrix by rows, without batches and blocks
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/layout_tensor.h"

namespace treadle::sparse {

inline constexpr Layout kLayouts[] = {Layout::SparseCoo, Layout::SparseCsr, Layout::SparseCsc,
                                      Layout::SparseBsr, Layout::SparseBsc};

inline bool is_coo(const Tensor& t) { return t.layout() == Layout::SparseCoo; }
inline bool has_blocks(Layout layout) {
  return layout == Layout::SparseBsr || layout == Layout::SparseBsc;
}
inline bool is_by_rows(Layout layout) {
  return layout == Layout::SparseCsr || layout == Layout::SparseBsr;
}
inline bool is_compressed(Layout layout) {
  return layout == Layout::SparseCsr || layout == Layout::SparseCsc || has_blocks(layout);
}
inline bool is_sparse(const Tensor& t) { return is_coo(t) || is_compressed(t.layout()); }

struct Coo {
  Tensor indices, values;
  DimVector sizes;
  bool is_coalesced = false;

  int64_t sparse_dim() const { return indices.size(0); }
  int64_t nnz() const { return values.size(0); }
  IntList sparse_sizes() const {
    return IntList(sizes).slice(0, static_cast<size_t>(sparse_dim()));
  }
};

struct Compressed {
  Layout layout;
  Tensor offsets, indices, values;
  DimVector sizes;

  int64_t batch_dims() const { return offsets.dim() - 1; }
  int64_t dense_dims() const {
    return values.dim() - 1 - batch_dims() - (has_blocks(layout) ? 2 : 0);
  }
};

struct Matrix {
  Tensor offsets, columns, values;
  int64_t rows, width;
};

// The entries of a tensor of any sparse layout. NotImplementedError for a strided tensor: "`op`:
// expected a sparse tensor".
Coo coo_of(const char* op, const Tensor& t);
Coo coalesced(const Coo& coo);
Tensor tensor_of(const Coo& coo);

Compressed compressed_of(const char* op, const Tensor& t);
Tensor tensor_of(const Compressed& compressed);
// The coordinates of compressed entries, in the order in which those lie.
Coo expanded(const Compressed& compressed);
Tensor dense_of(const Compressed& compressed);
// The entries by rows or by columns; `blocks` are the sizes of blocks, for the layouts with them.
Tensor compressed_tensor(const char* op, const Coo& coo, Layout layout, OptionalIntList blocks);

// The entries of two sparse dimensions that are coalesced, by rows.
Matrix by_rows_of(const Coo& coo);
Matrix matrix_of(const char* op, const Tensor& t);
Matrix transposed(const Matrix& m);

// A tensor by coordinates, by rows or by columns that has no entries. NotImplementedError for other
// layouts.
Tensor without_entries(const char* op, Layout layout, IntList size, ScalarType dtype,
                       Device device);

// The same tensor in the layout of `like`.
Tensor in_layout_of(const char* op, const Tensor& like, const Coo& coo);

// RuntimeError unless the contents are those of such a tensor.
void check_coo(const char* op, IntList sizes, const LayoutContents& contents);
void check_compressed(const char* op, Layout layout, IntList sizes, const LayoutContents& contents);

// The elements of a strided tensor at the indices, (nnz, dense dims).
Tensor picked(const Tensor& dense, const Tensor& indices);
// A strided tensor with values added to its elements at the indices.
Tensor added(const Tensor& dense, const Tensor& indices, const Tensor& values);
// Adds values times a factor, in place.
void add_at(const Tensor& dense, const Tensor& indices, const Tensor& values, const Scalar& factor);
// Sums of `values` (nnz, dense dims) over `count` groups.
Tensor grouped(const Tensor& values, const Tensor& groups, int64_t count);

}  // namespace treadle::sparse
