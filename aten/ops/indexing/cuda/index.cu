// Reads of slices at the entries of index tensors: index, index_select, embedding. Entries are
// checked at their use. One out of range is a fault, and its slice is not read.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/_index_integer.h"
#include "aten/ops/embedding.h"
#include "aten/ops/index_select.h"
#include "aten/ops/indexing/cuda/index_entries.cuh"

namespace treadle::cuda {
namespace {

// Names of operators where kernels can read them.
__device__ const char kIndex[] = "index";
__device__ const char kIndexSelect[] = "index_select";
__device__ const char kEmbedding[] = "embedding";

// out[o][e][r], of `width` units in r.
template <class Unit, class Entries>
__global__ void read_kernel(const Unit* data, Entries place, Axes outer, Axes inner, Unit* out,
                            int64_t total, int64_t entries, int64_t width) {
  for_each_element(total, [=](int64_t i) {
    const int64_t row = i / width, r = i - row * width, o = row / entries, e = row - o * entries;
    const int64_t at = place(e);
    if (at >= 0) out[i] = data[outer.at(o) + at + inner.at(r)];
  });
}

// f(Unit, elements of one): the widest unit of memory that the rows of `inner` and all addresses
// are made of.
template <class F>
void with_widest_unit(int64_t element, const Axes& outer, const Axes& inner, int64_t index_strides,
                      uintptr_t addresses, F f) {
  uint64_t all = addresses | static_cast<uint64_t>(index_strides * element);
  for (int d = 0; d < outer.count; ++d) all |= static_cast<uint64_t>(outer.strides[d] * element);
  for (int d = 0; d + 1 < inner.count; ++d)
    all |= static_cast<uint64_t>(inner.strides[d] * element);
  const bool rows = inner.count > 0 && inner.strides[inner.count - 1] == 1;
  all |= static_cast<uint64_t>(rows ? inner.sizes[inner.count - 1] * element : element);
  if (all % 16 == 0)
    f(uint4{}, 16 / element);
  else if (all % 8 == 0)
    f(uint64_t{}, 8 / element);
  else if (all % 4 == 0)
    f(uint32_t{}, 4 / element);
  else if (all % 2 == 0)
    f(uint16_t{}, 2 / element);
  else
    f(uint8_t{}, int64_t{1});
}

// The axes in units of `unit` elements, of which the last dimension of `rows` is made.
Axes in_units(Axes axes, int64_t unit, bool rows) {
  for (int d = 0; d < axes.count; ++d) {
    if (rows && d == axes.count - 1 && axes.strides[d] == 1)
      axes.sizes[d] /= unit;
    else
      axes.strides[d] /= unit;
  }
  return axes;
}

// with_places(unit, f) calls f with the offsets of the entries, in units of that many elements.
template <class WithPlaces>
void read(const char* op, const Tensor& self, IntList before, IntList after, int64_t entries,
          int64_t index_strides, const Tensor& out, const Place& place, WithPlaces with_places) {
  if (out.numel() == 0) return;
  const Axes outer = axes_of(op, self, before), inner = axes_of(op, self, after);
  int64_t width = 1;
  for (const int64_t d : after) width *= self.size(d);
  const auto addresses =
      reinterpret_cast<uintptr_t>(self.data()) | reinterpret_cast<uintptr_t>(out.data());
  with_widest_unit(self.element_size(), outer, inner, index_strides, addresses,
                   [&]<class Unit>(Unit, int64_t unit) {
                     with_places(unit, [&](auto places) {
                       const int64_t total = out.numel() / unit;
                       read_kernel<<<blocks_for(total), kBlock, 0, place.stream>>>(
                           static_cast<const Unit*>(self.data()), places,
                           in_units(outer, unit, false), in_units(inner, unit, true),
                           static_cast<Unit*>(out.data()), total, entries, width / unit);
                       check_launched();
                     });
                   });
}

void read_dim(const char* op, const char* name, const Tensor& self, int64_t dim,
              const Tensor& index, const Tensor& out, const Place& place) {
  DimVector before, after;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d < dim) before.push_back(d);
    if (d > dim) after.push_back(d);
  }
  const int64_t stride = self.dim() ? self.stride(dim) : 0;
  read(op, self, before, after, index.numel(), stride, out, place, [&](int64_t unit, auto f) {
    with_entries(op, name, self, dim, index, false, unit, out, place, f);
  });
}

template <class T>
void embedding_cuda(const Tensor& weight, const Tensor& indices, int64_t /*padding_idx*/,
                    bool /*scale_grad_by_freq*/, bool /*sparse*/, const Tensor& out) {
  const Place place(out);
  read_dim("embedding", on_device(kEmbedding), weight, 0, indices, out, place);
}
template <class T>
void index_select_cuda(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
  const Place place(out);
  read_dim("index_select", on_device(kIndexSelect), self, wrap_dim("index_select", dim, self.dim()),
           index, out, place);
}

template <class T>
void index_integer_cuda(const Tensor& self, TensorList indices, const Tensor& out) {
  const Place place(out);
  const shape::IndexGeometry g = shape::index_geometry("index", self, indices);
  int64_t strides = 0;
  for (const int64_t d : g.indexed_dims) strides |= self.stride(d);
  read("index", self, g.before_dims, g.after_dims, checked_numel(g.index_sizes), strides, out,
       place, [&](int64_t unit, auto f) {
         with_entries("index", on_device(kIndex), self, indices, g, unit, out, place, f);
       });
}

const auto embedding_registered = register_cuda<aten::ops::embedding>(
    AllTypes(), []<class T>() { return &embedding_cuda<T>; }, "embedding_cuda");
const auto index_select_registered = register_cuda<aten::ops::index_select>(
    AllTypes(), []<class T>() { return &index_select_cuda<T>; }, "index_select_cuda");
const auto index_registered = register_cuda<aten::ops::_index_integer>(
    AllTypes(), []<class T>() { return &index_integer_cuda<T>; }, "index_integer_cuda");

}  // namespace
}  // namespace treadle::cuda
