// gather: out[index[i][j]][j] for dim 0, and so on for other dimensions; and scatter and related
// operators, which write there. Entries out of range are faults, and are skipped.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/gather.h"
#include "aten/ops/indexing/cuda/deterministic_scatter.cuh"
#include "aten/ops/indexing/cuda/index_entries.cuh"
#include "aten/ops/scatter.h"
#include "aten/ops/scatter_add.h"
#include "aten/ops/scatter_reduce.h"

namespace treadle::cuda {
namespace {

__device__ const char kGather[] = "gather";
__device__ const char kScatter[] = "scatter";
__device__ const char kScatterAdd[] = "scatter_add";
__device__ const char kScatterReduce[] = "scatter_reduce";

// The offset of an entry's element in the tensor that `index` is paired with: at the entry's own
// coordinates, except for `dim`, where its value is the coordinate.
struct PairedEntries {
  DirectEntries entries;
  Axes others;
  __device__ int64_t operator()(int64_t i) const {
    const int64_t at = entries(i);
    return at < 0 ? -1 : at + others.at(i);
  }
};

// A 0-dim tensor is seen as one of shape (1,).
DimVector at_least_1d(IntList values) { return values.empty() ? DimVector{1} : DimVector(values); }

// `entries` keeps the index that is read.
PairedEntries paired(const char* op, const char* name, const Tensor& t, int64_t dim,
                     const Tensor& entries, const Place& place) {
  const DimVector sizes = at_least_1d(entries.sizes()), own = at_least_1d(t.sizes());
  DimVector strides = at_least_1d(t.strides());
  const auto d = static_cast<size_t>(wrap_dim(op, dim, t.dim()));
  const int64_t stride = strides[d];
  strides[d] = 0;
  return {{entries.data_as<int64_t>(),
           axes_over(op, sizes, at_least_1d(entries.strides())),
           {own[d], stride, false, -1, name, faults().place(place.device)}},
          axes_over(op, sizes, strides)};
}

template <class Unit>
__global__ void gather_kernel(const Unit* data, PairedEntries place, Unit* out, int64_t n) {
  for_each_element(n, [=](int64_t i) {
    const int64_t at = place(i);
    if (at >= 0) out[i] = data[at];
  });
}
template <class T>
void gather_cuda(const Tensor& self, int64_t dim, const Tensor& index, bool /*sparse_grad*/,
                 const Tensor& out) {
  const int64_t n = index.numel();
  if (n == 0) return;
  const Place place(out);
  const Tensor entries = entries_of(index, out);
  gather_kernel<<<blocks_for(n), kBlock, 0, place.stream>>>(
      static_cast<const Bits<T>*>(self.data()),
      paired("gather", on_device(kGather), self, dim, entries, place),
      static_cast<Bits<T>*>(out.data()), n);
  check_launched();
}

// ---- scatter ----

// The elements of `src` at the coordinates of `index`.
template <class T>
SourceElements<T> elements_of(const char* op, const Tensor& src, const Tensor& index) {
  return {static_cast<const T*>(src.data()),
          axes_over(op, at_least_1d(index.sizes()), at_least_1d(src.strides())),
          {}};
}
template <class T>
TargetElements<T> target_of(const Tensor& out) {
  return {static_cast<T*>(out.data()), 1, {}};
}

// Calls f(places, whether several may be equal). It does nothing if there are no entries.
template <class F>
void with_places(const char* op, const char* name, int64_t dim, const Tensor& index,
                 const Tensor& out, const Place& place, F f) {
  const Tensor entries = entries_of(index, out);
  const auto d = static_cast<size_t>(wrap_dim(op, dim, out.dim()));
  f(paired(op, name, out, dim, entries, place), at_least_1d(index.sizes())[d] > 1);
}

template <class F>
void combine(const char* op, const char* name, int64_t dim, const Tensor& index, const Tensor& out,
             F write, const Place& place) {
  const int64_t n = index.numel();
  with_places(op, name, dim, index, out, place, [&](PairedEntries places, bool meet) {
    if (!meet) return scatter_each(places, n, 1, write, place);
    scatter_fold(sorted_entries(op, places, n, out.numel(), place), out.numel(), 1, write, place);
  });
}

template <class T>
void scatter_src_cuda(const Tensor& /*self*/, int64_t dim, const Tensor& index, const Tensor& src,
                      const Tensor& out) {
  const int64_t n = index.numel();
  if (n == 0) return;
  const Place place(out);
  const Tensor from = apart_from(src, out);
  const Assign<Bits<T>> assign{elements_of<Bits<T>>("scatter", from, index),
                               target_of<Bits<T>>(out)};
  with_places("scatter", on_device(kScatter), dim, index, out, place,
              [&](PairedEntries places, bool meet) {
                scatter_entries("scatter", places, n, out.numel(), 1, assign, meet, place);
              });
}

template <class T>
void scatter_value_cuda(const Tensor& /*self*/, int64_t dim, const Tensor& index,
                        const Scalar& value, const Tensor& out) {
  if (index.numel() == 0) return;
  const Place place(out);
  const T number = value.to<T>();
  Fill<Bits<T>> fill{nullptr, {}, target_of<Bits<T>>(out)};
  std::memcpy(&fill.value, &number, sizeof number);
  with_places(
      "scatter", on_device(kScatter), dim, index, out, place,
      [&](PairedEntries places, bool) { scatter_each(places, index.numel(), 1, fill, place); });
}

template <class T>
void scatter_add_cuda(const Tensor& /*self*/, int64_t dim, const Tensor& index, const Tensor& src,
                      const Tensor& out) {
  using S = Stored<T>;
  if (index.numel() == 0) return;
  const Place place(out);
  const Tensor from = apart_from(src, out);
  combine("scatter_add", on_device(kScatterAdd), dim, index, out,
          Combine<S>{elements_of<S>("scatter_add", from, index), target_of<S>(out)}, place);
}

template <class T>
void add_or_multiply(int64_t dim, const Tensor& index, SourceElements<Stored<T>> source, T factor,
                     std::string_view reduce, const Tensor& out, const Place& place) {
  using S = Stored<T>;
  combine("scatter", on_device(kScatter), dim, index, out,
          Combine<S>{source, target_of<S>(out), reduce == "add" ? Joining::Sum : Joining::Product,
                     as_computed(factor)},
          place);
}
template <class T>
void scatter_reduce_cuda(const Tensor& /*self*/, int64_t dim, const Tensor& index,
                         const Tensor& src, std::string_view reduce, const Tensor& out) {
  if (index.numel() == 0) return;
  const Place place(out);
  const Tensor from = apart_from(src, out);
  add_or_multiply<T>(dim, index, elements_of<Stored<T>>("scatter", from, index), T(0), reduce, out,
                     place);
}
template <class T>
void scatter_value_reduce_cuda(const Tensor& /*self*/, int64_t dim, const Tensor& index,
                               const Scalar& value, std::string_view reduce, const Tensor& out) {
  if (index.numel() == 0) return;
  const Place place(out);
  add_or_multiply<T>(dim, index, {nullptr, {}, {}}, value.to<T>(), reduce, out, place);
}

template <class T>
void scatter_reduce_two_cuda(const Tensor& /*self*/, int64_t dim, const Tensor& index,
                             const Tensor& src, std::string_view reduce, bool include_self,
                             const Tensor& out) {
  if (index.numel() == 0) return;
  const char* const op = "scatter_reduce";
  const Place place(out);
  const Tensor from = apart_from(src, out);
  const Joining joining = reduce == "prod"   ? Joining::Product
                          : reduce == "amax" ? Joining::Largest
                          : reduce == "amin" ? Joining::Smallest
                                             : Joining::Sum;
  combine(op, on_device(kScatterReduce), dim, index, out,
          Combine<T>{elements_of<T>(op, from, index),
                     target_of<T>(out),
                     joining,
                     {},
                     false,
                     include_self,
                     reduce == "mean"},
          place);
}

const auto gather_registered = register_cuda<aten::ops::gather>(
    AllTypes(), []<class T>() { return &gather_cuda<T>; }, "gather_cuda");
const auto scatter_src_registered = register_cuda<aten::ops::scatter_src>(
    AllTypes(), []<class T>() { return &scatter_src_cuda<T>; }, "scatter_src_cuda");
const auto scatter_value_registered = register_cuda<aten::ops::scatter_value>(
    AllTypes(), []<class T>() { return &scatter_value_cuda<T>; }, "scatter_value_cuda");
const auto scatter_add_registered = register_cuda<aten::ops::scatter_add>(
    AllTypes(), []<class T>() { return &scatter_add_cuda<T>; }, "scatter_add_cuda");
const auto scatter_reduce_registered = register_cuda<aten::ops::scatter_reduce>(
    AllTypes(), []<class T>() { return &scatter_reduce_cuda<T>; }, "scatter_reduce_cuda");
const auto scatter_value_reduce_registered = register_cuda<aten::ops::scatter_value_reduce>(
    AllTypes(), []<class T>() { return &scatter_value_reduce_cuda<T>; },
    "scatter_value_reduce_cuda");
const auto scatter_reduce_two_registered = register_cuda<aten::ops::scatter_reduce_two>(
    DeclaredTypes<aten::ops::scatter_reduce_two>(),
    []<class T>() { return &scatter_reduce_two_cuda<T>; }, "scatter_reduce_two_cuda");

}  // namespace
}  // namespace treadle::cuda
