// Entries of index tensors as offsets, for kernels that read or write one whole slice of a tensor
// for each entry.
//
//   element (o, e, r)  =  data[outer.at(o) + place(e) + inner.at(r)]
//
// `outer` are the dimensions before those that the indices replace, `inner` those after.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/backend/cuda/kernels/axes.cuh"
#include "aten/ops/expand.h"
#include "aten/ops/indexing/cuda/slice_writes.cuh"
#include "aten/ops/indexing/index_geometry.h"
#include "aten/ops/to.h"

namespace treadle::cuda {

// A dimension that an index tensor selects from.
struct IndexedDim {
  int64_t size, stride;
  bool wraps;      // entries below 0 count from the end
  int dim;         // for the message; -1: the operator has but one
  const char* op;  // on the device
  FaultPlace fault;

  // The start of the entry's slice. For an entry out of range it is negative, and a fault is
  // recorded.
  __device__ int64_t place(int64_t entry) const {
    const int64_t at = wraps && entry < 0 ? entry + size : entry;
    if (at >= 0 && at < size) return at * stride;
    record_fault(fault, dim < 0 ? kIndexOutOfRange : kIndexOutOfDim, op, wraps ? -size : 0, size,
                 entry, dim);
    return -1;
  }
};

// The offsets of one index tensor, computed at their use.
struct DirectEntries {
  const int64_t* index;
  Axes axes;
  IndexedDim dim;
  __device__ int64_t operator()(int64_t e) const { return dim.place(index[axes.at(e)]); }
};
// The offsets of several index tensors, which are stored.
struct KeptEntries {
  const int64_t* places;
  __device__ int64_t operator()(int64_t e) const { return places[e]; }
};

template <class Entries>
__global__ void keep_entries(Entries entries, int64_t n, bool first, int64_t* places) {
  for_each_element(n, [=](int64_t e) {
    const int64_t before = first ? 0 : places[e], place = entries(e);
    places[e] = before < 0 || place < 0 ? -1 : before + place;
  });
}

// As int64, and without sharing memory that is written.
inline Tensor entries_of(const Tensor& index, const Tensor& written) {
  if (index.dtype() != ScalarType::Int64) return aten::to(index, ScalarType::Int64);
  return apart_from(index, written);
}

// f(entries) with the offsets, in units of `unit` elements, of the dimension `dim`.
template <class F>
void with_entries(const char* op, const char* name, const Tensor& t, int64_t dim,
                  const Tensor& index, bool wraps, int64_t unit, const Tensor& written,
                  const Place& place, F f) {
  const Tensor entries = entries_of(index, written);
  const Axes axes = axes_over(op, entries.sizes(), entries.strides());
  const auto d = static_cast<size_t>(dim);
  const bool scalar = t.dim() == 0;
  f(DirectEntries{entries.data_as<int64_t>(),
                  axes,
                  {scalar ? 1 : t.sizes()[d], scalar ? 0 : t.strides()[d] / unit, wraps, -1, name,
                   faults().place(place.device)}});
}
// And for the dimensions of advanced indexing.
template <class F>
void with_entries(const char* op, const char* name, const Tensor& t, TensorList indices,
                  const shape::IndexGeometry& g, int64_t unit, const Tensor& written,
                  const Place& place, F f) {
  const int64_t n = checked_numel(g.index_sizes);
  const bool one = g.indexed_dims.size() == 1;
  Tensor places;
  for (const int64_t d : g.indexed_dims) {
    const auto at = static_cast<size_t>(d);
    const Tensor entries = aten::expand(entries_of(indices[at], written), g.index_sizes);
    const DirectEntries direct{entries.data_as<int64_t>(),
                               axes_over(op, entries.sizes(), entries.strides()),
                               {t.sizes()[at], t.strides()[at] / unit, true, static_cast<int>(d),
                                name, faults().place(place.device)}};
    if (one) return f(direct);
    const bool first = !places.defined();
    if (first) places = empty_tensor({n}, ScalarType::Int64, place.where);
    keep_entries<<<blocks_for(n), kBlock, 0, place.stream>>>(direct, n, first,
                                                             places.data_as<int64_t>());
    check_launched();
  }
  f(KeptEntries{places.data_as<int64_t>()});
}

}  // namespace treadle::cuda
