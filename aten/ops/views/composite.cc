// The views that other views are composed of: new sizes and strides over the memory of a tensor, on
// any device.
//
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "aten/engine/named_errors.h"
#include "aten/engine/strides/view_shapes.h"
#include "aten/ops/_as_strided.h"
#include "aten/ops/_conj.h"
#include "aten/ops/_neg_view.h"
#include "aten/ops/alias.h"
#include "aten/ops/detach.h"
#include "aten/ops/diagonal.h"
#include "aten/ops/expand.h"
#include "aten/ops/permute.h"
#include "aten/ops/select.h"
#include "aten/ops/slice.h"
#include "aten/ops/squeeze.h"
#include "aten/ops/transpose.h"
#include "aten/ops/unfold.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/view.h"
#include "aten/ops/view_as_complex.h"
#include "aten/ops/view_as_real.h"
#include "aten/ops/views/view_geometry.h"
#include "core/base/checked.h"
#include "core/tensor/tensor.h"

namespace treadle::views {
namespace {

using shape::moved;
using shape::times;
using shape::ViewGeometry;

Tensor same_geometry(const Tensor& self) {
  return alias_with_geometry(self, self.sizes(), self.strides(), self.storage_offset());
}

// Bits for pending operations on the values when they are read.
Tensor with_bits(Tensor view, bool conjugated, bool negated) {
  view.impl()->set_lazy(conjugated, negated);
  return view;
}

Tensor squeeze_where(const Tensor& self, const DimVector& dims) {
  DimVector sizes, strides;
  for (int64_t d = 0; d < self.dim(); ++d) {
    const bool named = std::find(dims.begin(), dims.end(), d) != dims.end();
    if (named && self.sizes()[d] == 1) continue;
    sizes.push_back(self.sizes()[d]);
    strides.push_back(self.strides()[d]);
  }
  return alias_with_geometry(self, sizes, strides, self.storage_offset());
}

}  // namespace

Tensor as_strided_from(const Tensor& self, IntList size, IntList stride, int64_t offset) {
  const Checked from_start = Checked(self.storage_offset()) + offset;
  check<ErrorKind::Runtime>(from_start.fits(), OpName("as_strided"),
                            "expected an offset inside the storage, got offset = ", offset);
  return named("as_strided",
               [&] { return alias_with_geometry(self, size, stride, from_start.value()); });
}

Tensor alias(const Tensor& self) { return same_geometry(self); }
Tensor detach(const Tensor& self) { return same_geometry(self); }

Tensor view(const Tensor& self, IntList size) {
  const DimVector sizes = shape::infer_size("view", size, self.numel());
  const auto strides = shape::view_strides(self.sizes(), self.strides(), sizes);
  check<ErrorKind::Runtime>(strides.has_value(), OpName("view"),
                            "expected a shape that the strides of the tensor allow, got shape = ",
                            sizes, " for sizes = ", self.sizes(), ", strides = ", self.strides(),
                            "\nuse reshape, which copies where it must");
  return alias_with_geometry(self, sizes, *strides, self.storage_offset());
}

Tensor view_dtype(const Tensor& self, ScalarType dtype) {
  const bool conjugated = self.impl()->is_conj();
  check<ErrorKind::Runtime>(!conjugated && !self.impl()->is_neg(), OpName("view"),
                            "expected a tensor whose bytes are its values, got one whose ",
                            conjugated ? "is_conj" : "is_neg", "() is True\n",
                            conjugated ? "resolve_conj" : "resolve_neg",
                            "() gives a copy that can be seen as another dtype");
  const int64_t from = item_size(self.dtype()), to = item_size(dtype);
  DimVector sizes(self.sizes()), strides(self.strides());
  if (from == to) return alias_as(self, dtype, sizes, strides, self.storage_offset());
  check<ErrorKind::Runtime>(self.dim() > 0, OpName("view"),
                            "expected at least one dimension for a dtype of another size, got 0");
  check<ErrorKind::Runtime>(
      strides.back() == 1, OpName("view"),
      "expected a last dimension of stride 1 for a dtype of another size, got strides = ",
      self.strides());
  if (from > to) {
    const int64_t ratio = from / to;
    check<ErrorKind::Runtime>((Checked(sizes.back()) * ratio).fits(), OpName("view"),
                              "expected a size that can be counted in ", dtype,
                              ", got sizes = ", self.sizes());
    for (size_t d = 0; d + 1 < strides.size(); ++d) strides[d] = times(strides[d], ratio);
    sizes.back() *= ratio;
    return alias_as(self, dtype, sizes, strides, self.storage_offset() * ratio);
  }
  const int64_t ratio = to / from;
  bool whole = sizes.back() % ratio == 0 && self.storage_offset() % ratio == 0;
  for (size_t d = 0; d + 1 < strides.size(); ++d) {
    whole = whole && strides[d] % ratio == 0;
    strides[d] /= ratio;
  }
  check<ErrorKind::Runtime>(
      whole, OpName("view"),
      "expected the last size, the offset and the other strides to be multiples of ", ratio,
      " for ", dtype, ", got sizes = ", self.sizes(), ", strides = ", self.strides(),
      ", offset = ", self.storage_offset());
  sizes.back() /= ratio;
  return alias_as(self, dtype, sizes, strides, self.storage_offset() / ratio);
}

Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  const int64_t a = wrap_dim("transpose", dim0, self.dim()),
                b = wrap_dim("transpose", dim1, self.dim());
  DimVector sizes(self.sizes()), strides(self.strides());
  if (a != b) {
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
  }
  return alias_with_geometry(self, sizes, strides, self.storage_offset());
}

Tensor permute(const Tensor& self, IntList dims) {
  check<ErrorKind::Runtime>(static_cast<int64_t>(dims.size()) == self.dim(), OpName("permute"),
                            "expected ", self.dim(), " dims, got dims = ", dims);
  DimVector sizes, strides;
  for (int64_t d : wrap_dims("permute", dims, self.dim(), false)) {
    sizes.push_back(self.sizes()[d]);
    strides.push_back(self.strides()[d]);
  }
  return alias_with_geometry(self, sizes, strides, self.storage_offset());
}

Tensor expand(const Tensor& self, IntList size, bool) {
  const int64_t lead = static_cast<int64_t>(size.size()) - self.dim();
  check<ErrorKind::Runtime>(lead >= 0, OpName("expand"), "expected at least ", self.dim(),
                            " sizes, got size = ", size);
  DimVector sizes(size), strides(size.size());
  // From the last dimension on, because a new one of size 1 has the stride that unsqueeze gives it.
  for (int64_t d = static_cast<int64_t>(size.size()) - 1; d >= 0; --d) {
    const int64_t old = d >= lead ? self.sizes()[d - lead] : 1;
    if (size[d] == -1) {
      check<ErrorKind::Runtime>(
          d >= lead, OpName("expand"),
          "expected -1 only for dimensions that are there, got size = ", size);
      sizes[d] = old;
    }
    check<ErrorKind::Runtime>(sizes[d] >= 0 && (old == 1 || sizes[d] == old), OpName("expand"),
                              "expected sizes that ", self.sizes(),
                              " broadcasts to, got size = ", size);
    if (old == 1 && sizes[d] != 1)
      strides[d] = 0;
    else if (d >= lead)
      strides[d] = self.strides()[d - lead];
    else
      strides[d] = d + 1 < static_cast<int64_t>(size.size()) ? sizes[d + 1] * strides[d + 1] : 0;
  }
  return named("expand",
               [&] { return alias_with_geometry(self, sizes, strides, self.storage_offset()); });
}

Tensor squeeze(const Tensor& self) {
  return squeeze_where(self, wrap_dims("squeeze", std::nullopt, self.dim(), true));
}
Tensor squeeze(const Tensor& self, int64_t dim) {
  return squeeze_where(self, {wrap_dim("squeeze", dim, self.dim())});
}
Tensor squeeze(const Tensor& self, IntList dim) {
  return squeeze_where(self, wrap_dims("squeeze", dim, self.dim(), false));
}

Tensor unsqueeze(const Tensor& self, int64_t dim) {
  const size_t d = static_cast<size_t>(wrap_dim("unsqueeze", dim, self.dim() + 1));
  ViewGeometry geometry(self);
  geometry.unsqueeze(d);
  return geometry.over(self);
}

Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  check<ErrorKind::Index>(self.dim() > 0, OpName("select"),
                          "expected at least one dimension, got a 0-dim tensor");
  const size_t d = static_cast<size_t>(wrap_dim("select", dim, self.dim()));
  const int64_t size = self.sizes()[d];
  check<ErrorKind::Index>(index >= -size && index < size, OpName("select"), "expected index in [",
                          -size, ", ", size, ") for dimension ", d, ", got index = ", index);
  ViewGeometry geometry(self);
  geometry.select(d, index < 0 ? index + size : index);
  return geometry.over(self);
}

Tensor slice(const Tensor& self, int64_t dim, std::optional<int64_t> start,
             std::optional<int64_t> end, int64_t step) {
  check<ErrorKind::Runtime>(self.dim() > 0, OpName("slice"),
                            "expected at least one dimension, got a 0-dim tensor");
  const size_t d = static_cast<size_t>(wrap_dim("slice", dim, self.dim()));
  ViewGeometry geometry(self);
  geometry.slice(d, shape::slice_range(start, end, step, self.sizes()[d]));
  return geometry.over(self);
}

Tensor diagonal(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  check<ErrorKind::Runtime>(self.dim() >= 2, OpName("diagonal"),
                            "expected at least 2 dimensions, got ", self.dim());
  const int64_t a = wrap_dim("diagonal", dim1, self.dim()),
                b = wrap_dim("diagonal", dim2, self.dim());
  check<ErrorKind::Runtime>(a != b, OpName("diagonal"),
                            "expected two different dimensions, got dim1 = ", dim1,
                            ", dim2 = ", dim2);
  const int64_t rows = self.sizes()[a], columns = self.sizes()[b];
  const int64_t length = std::max<int64_t>(
      0, offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns));
  int64_t start = self.storage_offset();
  if (length > 0)
    start = offset >= 0 ? moved(start, offset, self.strides()[b])
                        : moved(start, -offset, self.strides()[a]);
  DimVector sizes, strides;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d == a || d == b) continue;
    sizes.push_back(self.sizes()[d]);
    strides.push_back(self.strides()[d]);
  }
  sizes.push_back(length);
  strides.push_back((Checked(self.strides()[a]) + self.strides()[b]).value_or(1));
  return alias_with_geometry(self, sizes, strides,
                             self.numel() == 0 ? self.storage_offset() : start);
}

Tensor unfold(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  const int64_t d = wrap_dim("unfold", dimension, self.dim());
  const int64_t whole = self.dim() == 0 ? 1 : self.sizes()[d];
  const int64_t stride = self.dim() == 0 ? 1 : self.strides()[d];
  check<ErrorKind::Runtime>(size <= whole, OpName("unfold"), "expected size <= ", whole,
                            ", which dimension ", d, " has, got size = ", size);
  DimVector sizes(self.sizes()), strides(self.strides());
  if (self.dim() > 0) {
    const int64_t windows = (whole - size) / step + 1;
    sizes[d] = windows;
    if (windows > 1) strides[d] = times(strides[d], step);
  }
  sizes.push_back(size);
  strides.push_back(stride);
  return alias_with_geometry(self, sizes, strides, self.storage_offset());
}

Tensor _conj(const Tensor& self) {
  check<ErrorKind::Runtime>(self.is_complex(), OpName("_conj"), "expected a complex tensor, got ",
                            self.dtype());
  return with_bits(same_geometry(self), !self.impl()->is_conj(), self.impl()->is_neg());
}

Tensor _neg_view(const Tensor& self) {
  return with_bits(same_geometry(self), self.impl()->is_conj(), !self.impl()->is_neg());
}

Tensor view_as_real(const Tensor& self) {
  check<ErrorKind::Runtime>(self.is_complex(), OpName("view_as_real"),
                            "expected a complex tensor, got ", self.dtype());
  check<ErrorKind::Runtime>(
      !self.impl()->is_conj(), OpName("view_as_real"),
      "expected a tensor that is not conjugated lazily, got one "
      "whose is_conj() is True\nresolve_conj() gives a copy that can be seen as "
      "real");
  DimVector sizes(self.sizes()), strides(self.strides());
  for (int64_t& s : strides) s = times(s, 2);
  sizes.push_back(2);
  strides.push_back(1);
  return with_bits(alias_as(self, to_real(self.dtype()), sizes, strides, self.storage_offset() * 2),
                   false, self.impl()->is_neg());
}

Tensor view_as_complex(const Tensor& self) {
  const bool half = self.dtype() == ScalarType::Float16;
  check<ErrorKind::Runtime>(
      half || self.dtype() == ScalarType::Float32 || self.dtype() == ScalarType::Float64,
      OpName("view_as_complex"), "expected a float16, float32 or float64 tensor, got ",
      self.dtype());
  check<ErrorKind::Runtime>(self.dim() > 0 && self.sizes().back() == 2, OpName("view_as_complex"),
                            "expected a last dimension of size 2, got sizes = ", self.sizes());
  bool pairs = self.strides().back() == 1 && self.storage_offset() % 2 == 0;
  DimVector sizes(self.sizes()), strides(self.strides());
  sizes.pop_back();
  strides.pop_back();
  for (int64_t& s : strides) {
    pairs = pairs && s % 2 == 0;
    s /= 2;
  }
  check<ErrorKind::Runtime>(pairs, OpName("view_as_complex"),
                            "expected a last stride of 1 and an even offset and "
                            "other strides, got strides = ",
                            self.strides(), ", offset = ", self.storage_offset());
  return with_bits(alias_as(self, half ? ScalarType::Complex32 : to_complex(self.dtype()), sizes,
                            strides, self.storage_offset() / 2),
                   false, self.impl()->is_neg());
}

}  // namespace treadle::views
