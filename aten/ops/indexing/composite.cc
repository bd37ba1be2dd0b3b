// Indexing operators composed of others. Masks become integer indices; flat views become indices of
// one dimension.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/_index_integer.h"
#include "aten/ops/_index_put_integer.h"
#include "aten/ops/add.h"
#include "aten/ops/clone.h"
#include "aten/ops/copy_.h"
#include "aten/ops/expand.h"
#include "aten/ops/gather.h"
#include "aten/ops/index.h"
#include "aten/ops/index_copy.h"
#include "aten/ops/index_fill.h"
#include "aten/ops/index_put.h"
#include "aten/ops/index_put_.h"
#include "aten/ops/indexing/index_geometry.h"
#include "aten/ops/item.h"
#include "aten/ops/lt.h"
#include "aten/ops/masked_fill.h"
#include "aten/ops/masked_scatter.h"
#include "aten/ops/masked_select.h"
#include "aten/ops/max.h"
#include "aten/ops/min.h"
#include "aten/ops/narrow.h"
#include "aten/ops/new_zeros.h"
#include "aten/ops/nonzero.h"
#include "aten/ops/nonzero_numpy.h"
#include "aten/ops/one_hot.h"
#include "aten/ops/put.h"
#include "aten/ops/reshape.h"
#include "aten/ops/scatter.h"
#include "aten/ops/select.h"
#include "aten/ops/take.h"
#include "aten/ops/take_along_dim.h"
#include "aten/ops/to.h"
#include "aten/ops/unbind.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/where.h"

namespace treadle::composite {
namespace {

bool is_mask(const Tensor& index) {
  return index.dtype() == ScalarType::Bool || index.dtype() == ScalarType::UInt8;
}

// A mask at position `at` covers as many dimensions of self as it has.
void check_mask(const char* op, const Tensor& self, const Tensor& mask, int64_t at) {
  const int64_t end = at + mask.dim();
  check<ErrorKind::Index>(mask.dim() > 0, OpName(op),
                          "expected a mask with at least 1 dimension, got a 0-dim one");
  check<ErrorKind::Index>(
      end <= self.dim() && self.sizes().slice(at, mask.dim()) == mask.sizes(), OpName(op),
      "expected a mask of the shape of the dimensions it selects from, got shape ", mask.sizes(),
      " at dimension ", at, " of a tensor of shape ", self.sizes());
}

// Indices may be on the CPU, wherever the tensor is.
Tensor beside(const Tensor& self, const Tensor& index) {
  if (!index.is_cpu() || self.is_cpu()) return index;
  return aten::to(index, index.dtype(), std::nullopt, self.device());
}

// Whether _index_integer takes the indices unchanged.
bool are_integers(const Tensor& self, TensorList indices) {
  bool any = false;
  for (const Tensor& index : indices) {
    if (!index.defined()) continue;
    if (is_mask(index) || index.is_cpu() != self.is_cpu()) return false;
    any = true;
  }
  return any;
}

// The indices, with each mask replaced by the positions where it is true. Empty if all of them are
// None.
std::vector<Tensor> integer_indices(const char* op, const Tensor& self, TensorList indices) {
  std::vector<Tensor> result;
  bool any = false;
  for (const Tensor& index : indices) {
    any |= index.defined();
    if (!index.defined() || !is_mask(index)) {
      result.push_back(index.defined() ? beside(self, index) : index);
      continue;
    }
    check_mask(op, self, index, static_cast<int64_t>(result.size()));
    for (Tensor& positions : aten::unbind(aten::nonzero(index), 1))
      result.push_back(beside(self, positions));
  }
  if (!any) result.clear();
  return result;
}

// The one mask among `indices` if all others are None; otherwise -1.
int64_t only_mask(TensorList indices) {
  int64_t found = -1;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i].defined()) continue;
    if (found >= 0 || !is_mask(indices[i])) return -1;
    found = static_cast<int64_t>(i);
  }
  return found;
}

Tensor flat(const Tensor& t) { return t.dim() == 1 ? t : aten::reshape(t, {-1}); }

void check_bool_mask(const char* op, const Tensor& mask) {
  check<ErrorKind::Runtime>(mask.dtype() == ScalarType::Bool, OpName(op),
                            "expected mask of dtype bool, got ", mask.dtype());
}

DimVector broadcast_sizes(const char* op, const Tensor& a, const Tensor& b) {
  const auto sizes = broadcast_shape(a.sizes(), b.sizes());
  check<ErrorKind::Runtime>(sizes.has_value(), OpName(op),
                            "expected shapes that broadcast together, got ", a.sizes(), " and ",
                            b.sizes());
  return *sizes;
}

}  // namespace

namespace {

// Values to write may have more dimensions than the target, if the leading ones have size 1.
Tensor without_leading_ones(const Tensor& values) {
  const IntList sizes = values.sizes();
  size_t ones = 0;
  while (ones + 1 < sizes.size() && sizes[ones] == 1) ++ones;
  return ones == 0 ? values : aten::reshape(values, sizes.slice(ones, sizes.size() - ones));
}

}  // namespace

Tensor index(const Tensor& self, TensorList indices) {
  if (are_integers(self, indices)) return aten::_index_integer(self, indices);
  const std::vector<Tensor> integers = integer_indices("index", self, indices);
  return integers.empty() ? aten::clone(self) : aten::_index_integer(self, integers);
}

Tensor index_put(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate) {
  return aten::index_put_(aten::clone(self), indices, values, accumulate);
}

Tensor index_put_(const Tensor& self, TensorList indices, const Tensor& given, bool accumulate) {
  const Tensor values = without_leading_ones(given);
  const Tensor here = values.dim() == 0 ? beside(self, values) : values;
  const Tensor source = values.impl()->is_wrapped_number() ? aten::to(here, self.dtype()) : here;
  check<ErrorKind::Runtime>(source.dtype() == self.dtype(), OpName("index_put"),
                            "expected values of self's dtype ", self.dtype(), ", got ",
                            source.dtype());
  if (are_integers(self, indices))
    return aten::_index_put_integer_(self, indices, source, accumulate);
  if (const int64_t at = only_mask(indices); at >= 0 && !accumulate && source.numel() == 1) {
    // One value for all elements of a mask needs no positions.
    const Tensor mask = beside(self, indices[at]);
    check_mask("index_put", self, mask, at);
    DimVector sizes(mask.sizes());
    sizes.resize(static_cast<size_t>(self.dim() - at), 1);
    return aten::masked_fill_(self, aten::reshape(aten::to(mask, ScalarType::Bool), sizes),
                              aten::reshape(source, {}));
  }
  const std::vector<Tensor> integers = integer_indices("index_put", self, indices);
  if (!integers.empty()) return aten::_index_put_integer_(self, integers, source, accumulate);
  check<ErrorKind::Runtime>(!accumulate, OpName("index_put"),
                            "expected at least one index tensor with accumulate, got none");
  return aten::copy_(self, source);
}

Tensor index_fill_tensor(const Tensor& self, int64_t dim, const Tensor& index,
                         const Tensor& value) {
  check<ErrorKind::Runtime>(value.dim() == 0, OpName("index_fill"),
                            "expected a 0-dim value, got shape ", value.sizes());
  const int64_t d = wrap_dim("index_fill", dim, self.dim());
  DimVector sizes(self.sizes());
  if (self.dim() > 0) sizes[d] = index.numel();
  return aten::index_copy(self, dim, index, aten::expand(aten::to(value, self.dtype()), sizes));
}

Tensor masked_select(const Tensor& self, const Tensor& mask) {
  check_bool_mask("masked_select", mask);
  const DimVector sizes = broadcast_sizes("masked_select", self, mask);
  if (sizes.empty()) return aten::index(aten::unsqueeze(self, 0), {aten::unsqueeze(mask, 0)});
  return aten::index(aten::expand(self, sizes), {aten::expand(mask, sizes)});
}

Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  check_bool_mask("masked_scatter", mask);
  check<ErrorKind::Runtime>(source.dtype() == self.dtype(), OpName("masked_scatter"),
                            "expected source of self's dtype ", self.dtype(), ", got ",
                            source.dtype());
  const DimVector sizes = broadcast_sizes("masked_scatter", self, mask);
  if (sizes.empty()) {
    return aten::reshape(masked_scatter(aten::unsqueeze(self, 0), aten::unsqueeze(mask, 0), source),
                         {});
  }
  const Tensor target = aten::expand(self, sizes);
  const std::vector<Tensor> positions =
      integer_indices("masked_scatter", target, {aten::expand(mask, sizes)});
  const int64_t count = positions[0].numel();
  check<ErrorKind::Runtime>(source.numel() >= count, OpName("masked_scatter"), "expected at least ",
                            count, " elements in source, one for each true of mask, got ",
                            source.numel());
  return aten::_index_put_integer(target, positions, aten::narrow(flat(source), 0, 0, count),
                                  false);
}

std::vector<Tensor> nonzero_numpy(const Tensor& self) {
  return aten::unbind(aten::nonzero(self.dim() == 0 ? aten::unsqueeze(self, 0) : self), 1);
}

Tensor take(const Tensor& self, const Tensor& index) {
  return aten::_index_integer(flat(self), {index});
}

Tensor put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  check<ErrorKind::Runtime>(source.numel() == index.numel(), OpName("put"),
                            "expected source with as many elements as index, got shapes ",
                            source.sizes(), " and ", index.sizes());
  check<ErrorKind::Runtime>(source.dtype() == self.dtype(), OpName("put"),
                            "expected source of self's dtype ", self.dtype(), ", got ",
                            source.dtype());
  return aten::reshape(
      aten::_index_put_integer(flat(self), {flat(index)}, flat(source), accumulate), self.sizes());
}

Tensor take_along_dim(const Tensor& self, const Tensor& given, std::optional<int64_t> dim) {
  if (!dim) return composite::take_along_dim(flat(self), flat(given), 0);
  check<ErrorKind::Runtime>(self.dim() == given.dim(), OpName("take_along_dim"),
                            "expected indices with as many dimensions as self, got shapes ",
                            given.sizes(), " and ", self.sizes());
  const int64_t d = wrap_dim("take_along_dim", *dim, self.dim());
  // Negative positions count from the end.
  const int64_t length = self.dim() == 0 ? 1 : self.size(d);
  const Tensor indices =
      aten::where(aten::lt(given, Scalar(0)), aten::add(given, Scalar(length)), given);
  if (self.dim() == 0) return aten::gather(self, 0, indices);
  DimVector own(self.sizes()), theirs(indices.sizes());
  own[d] = theirs[d] = 1;
  const auto sizes = broadcast_shape(own, theirs);
  check<ErrorKind::Runtime>(sizes.has_value(), OpName("take_along_dim"),
                            "expected shapes that broadcast together but for dimension ", d,
                            ", got ", self.sizes(), " and ", indices.sizes());
  own = theirs = *sizes;
  own[d] = self.size(d);
  theirs[d] = indices.size(d);
  return aten::gather(aten::expand(self, own), d, aten::expand(indices, theirs));
}

Tensor one_hot(const Tensor& self, int64_t num_classes) {
  check<ErrorKind::Runtime>(self.dtype() == ScalarType::Int64, OpName("one_hot"),
                            "expected self of dtype int64, got ", self.dtype());
  DimVector sizes(self.sizes());
  if (self.numel() == 0) {
    check<ErrorKind::Runtime>(
        num_classes > 0, OpName("one_hot"),
        "expected num_classes > 0 for a tensor without elements, got num_classes = ", num_classes);
    sizes.push_back(num_classes);
    return aten::new_zeros(self, sizes);
  }
  if (!self.is_meta()) {
    const int64_t least = aten::item(std::get<0>(aten::min(flat(self), 0))).to<int64_t>();
    const int64_t most = aten::item(std::get<0>(aten::max(flat(self), 0))).to<int64_t>();
    check<ErrorKind::Runtime>(least >= 0, OpName("one_hot"), "expected classes >= 0, got ", least);
    check<ErrorKind::Runtime>(most < INT64_MAX && (num_classes < 0 || most < num_classes),
                              OpName("one_hot"), "expected classes < num_classes = ", num_classes,
                              ", got ", most);
    if (num_classes < 0) num_classes = most + 1;
  }
  check<ErrorKind::NotImplemented>(
      num_classes >= 0, OpName("one_hot"),
      "expected num_classes on the meta device, got num_classes = ", num_classes);
  sizes.push_back(num_classes);
  return aten::scatter_(aten::new_zeros(self, sizes), -1, aten::unsqueeze(self, -1), Scalar(1));
}

}  // namespace treadle::composite
