// Operators that cut a tensor into several views along one dimension.
//
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <vector>

#include "aten/ops/chunk.h"
#include "aten/ops/select.h"
#include "aten/ops/slice.h"
#include "aten/ops/split.h"
#include "aten/ops/split_with_sizes.h"
#include "aten/ops/tensor_split.h"
#include "aten/ops/unbind.h"

namespace treadle::composite {
namespace {

int64_t split_dim(const char* op, const Tensor& self, int64_t dim) {
  check<ErrorKind::Runtime>(self.dim() > 0, OpName(op),
                            "expected at least one dimension, got a 0-dim tensor");
  return wrap_dim(op, dim, self.dim());
}

}  // namespace

std::vector<Tensor> split(const Tensor& self, int64_t split_size, int64_t dim) {
  const int64_t d = split_dim("split", self, dim), size = self.sizes()[d];
  check<ErrorKind::Runtime>(split_size > 0 || (split_size == 0 && size == 0), OpName("split"),
                            "expected split_size > 0, got split_size = ", split_size);
  std::vector<Tensor> pieces;
  // More pieces than memory holds are refused at once.
  pieces.reserve(size > 0 ? static_cast<size_t>((size - 1) / split_size + 1) : 1);
  for (int64_t at = 0; at < size;) {
    const int64_t length = std::min(split_size, size - at);
    pieces.push_back(aten::slice(self, d, at, at + length));
    at += length;
  }
  if (pieces.empty()) pieces.push_back(aten::slice(self, d, 0, 0));
  return pieces;
}

std::vector<Tensor> split_with_sizes(const Tensor& self, IntList split_sizes, int64_t dim) {
  const int64_t d = split_dim("split_with_sizes", self, dim), size = self.sizes()[d];
  int64_t total = 0;
  bool fits = true;
  for (int64_t s : split_sizes) fits = fits && s >= 0 && !__builtin_add_overflow(total, s, &total);
  check<ErrorKind::Runtime>(fits && total == size, OpName("split_with_sizes"),
                            "expected sizes >= 0 that add up to ", size,
                            ", got split_sizes = ", split_sizes);
  std::vector<Tensor> pieces;
  int64_t at = 0;
  for (int64_t s : split_sizes) {
    pieces.push_back(aten::slice(self, d, at, at + s));
    at += s;
  }
  return pieces;
}

std::vector<Tensor> split(const Tensor& self, IntList split_size, int64_t dim) {
  return aten::split_with_sizes(self, split_size, dim);
}

std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  const int64_t size = self.sizes()[split_dim("chunk", self, dim)];
  if (size == 0) {
    // No piece has a slice, and their number is the requested one. A number beyond memory is a
    // mistake.
    check<ErrorKind::Value>(
        chunks <= 65536, OpName("chunk"),
        "expected chunks <= 65536 for a dimension of size 0, got chunks = ", chunks);
    return std::vector<Tensor>(static_cast<size_t>(chunks), aten::slice(self, dim, 0, 0));
  }
  return aten::split(self, (size - 1) / chunks + 1, dim);
}

std::vector<Tensor> tensor_split(const Tensor& self, IntList indices, int64_t dim) {
  const int64_t d = split_dim("tensor_split", self, dim);
  std::vector<Tensor> pieces;
  int64_t at = 0;
  for (int64_t index : indices) {
    pieces.push_back(aten::slice(self, d, at, index));
    at = index;
  }
  pieces.push_back(aten::slice(self, d, at, self.sizes()[d]));
  return pieces;
}

std::vector<Tensor> tensor_split(const Tensor& self, int64_t sections, int64_t dim) {
  const int64_t d = split_dim("tensor_split", self, dim), size = self.sizes()[d];
  check<ErrorKind::Value>(sections <= std::max<int64_t>(size, 65536), OpName("tensor_split"),
                          "expected sections <= ", std::max<int64_t>(size, 65536),
                          ", got sections = ", sections);
  DimVector lengths;
  for (int64_t i = 0; i < sections; ++i)
    lengths.push_back(size / sections + (i < size % sections ? 1 : 0));
  return aten::split_with_sizes(self, lengths, d);
}

std::vector<Tensor> unbind(const Tensor& self, int64_t dim) {
  check<ErrorKind::Index>(self.dim() > 0, OpName("unbind"),
                          "expected at least one dimension, got a 0-dim tensor");
  const int64_t d = wrap_dim("unbind", dim, self.dim());
  std::vector<Tensor> slices;
  slices.reserve(static_cast<size_t>(self.sizes()[d]));
  for (int64_t i = 0; i < self.sizes()[d]; ++i) slices.push_back(aten::select(self, d, i));
  return slices;
}

}  // namespace treadle::composite
