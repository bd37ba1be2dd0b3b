// Writes of slices at the entries of index tensors: index_put, index_add, index_copy, index_fill.
// Entries out of range are faults, and are skipped. Where several entries name one position, the
// last one stays, or all are added in the entries' order.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/_index_put_integer.h"
#include "aten/ops/index_add.h"
#include "aten/ops/index_copy.h"
#include "aten/ops/index_fill.h"
#include "aten/ops/indexing/cuda/deterministic_scatter.cuh"
#include "aten/ops/indexing/cuda/index_entries.cuh"

namespace treadle::cuda {
namespace {

__device__ const char kIndexPut[] = "index_put";
__device__ const char kIndexAdd[] = "index_add";
__device__ const char kIndexCopy[] = "index_copy";
__device__ const char kIndexFill[] = "index_fill";

// The writes of a call: `entries` entries of `width` columns, at places below `span`.
struct Slices {
  int64_t entries, width, span, unit;
  Axes columns;  // of the target
};

DimVector all_but(const Tensor& t, int64_t dim) {
  DimVector dims;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (d != dim) dims.push_back(d);
  return dims;
}

// Along one dimension of a contiguous tensor.
class AlongDim {
 public:
  AlongDim(const char* op, const char* name, const Tensor& out, int64_t dim, const Tensor& index,
           bool wraps, const Place& place)
      : op_(op),
        name_(name),
        out_(out),
        dim_(wrap_dim(op, dim, out.dim())),
        index_(index),
        wraps_(wraps),
        place_(place) {
    slices.entries = index.numel();
    slices.span = out.dim() ? out.size(dim_) : 1;
    slices.width = out.numel() / slices.span;
    slices.unit = 1;
    for (int64_t d = dim_ + 1; d < out.dim(); ++d) slices.unit *= out.size(d);
    slices.columns = axes_of(op, out, all_but(out, dim_));
  }
  // source (o, e, r), or one element of any rank.
  template <class T>
  SourceElements<T> source(const Tensor& t) const {
    SourceElements<T> s{static_cast<const T*>(t.data()), {}, {}};
    if (t.dim() != out_.dim() || t.dim() == 0) return s;
    s.entries.add(op_, t.size(dim_), t.stride(dim_));
    s.columns = axes_of(op_, t, all_but(t, dim_));
    return s;
  }
  // f(places): entries as offsets in units of the dimension's stride.
  template <class F>
  void with_places(F f) const {
    with_entries(op_, name_, out_, dim_, index_, wraps_, slices.unit, out_, place_, f);
  }

  Slices slices;

 private:
  const char *op_, *name_;
  const Tensor& out_;
  int64_t dim_;
  const Tensor& index_;
  bool wraps_;
  const Place& place_;
};

template <class T>
void index_add_cuda(const Tensor& /*self*/, int64_t dim, const Tensor& index, const Tensor& source,
                    const Scalar& alpha, const Tensor& out) {
  using S = Stored<T>;
  if (out.numel() == 0 || index.numel() == 0) return;
  const Place place(out);
  const AlongDim along("index_add", on_device(kIndexAdd), out, dim, index, false, place);
  const Slices& s = along.slices;
  const Tensor from = apart_from(source, out);
  const T factor = alpha.to<T>();
  const Combine<S> add{along.source<S>(from),
                       {static_cast<S*>(out.data()), s.unit, s.columns},
                       Joining::Sum,
                       as_computed(factor),
                       factor != T(1)};
  along.with_places([&](auto places) {
    const SortedPairs pairs = sorted_entries("index_add", places, s.entries, s.span, place);
    scatter_fold(pairs, s.span, s.width, add, place);
  });
}

template <class T>
void index_copy_cuda(const Tensor& /*self*/, int64_t dim, const Tensor& index, const Tensor& source,
                     const Tensor& out) {
  if (out.numel() == 0 || index.numel() == 0) return;
  const Place place(out);
  const AlongDim along("index_copy", on_device(kIndexCopy), out, dim, index, false, place);
  const Slices& s = along.slices;
  const Tensor from = apart_from(source, out);
  const Assign<Bits<T>> assign{along.source<Bits<T>>(from),
                               {static_cast<Bits<T>*>(out.data()), s.unit, s.columns}};
  along.with_places([&](auto places) {
    scatter_entries("index_copy", places, s.entries, s.span, s.width, assign, s.entries > 1, place);
  });
}

template <class T>
void index_fill_cuda(const Tensor& /*self*/, int64_t dim, const Tensor& index, const Scalar& value,
                     const Tensor& out) {
  if (out.numel() == 0 || index.numel() == 0) return;
  const Place place(out);
  const AlongDim along("index_fill", on_device(kIndexFill), out, dim, index, true, place);
  const Slices& s = along.slices;
  const T filler = value.to<T>();
  Fill<Bits<T>> fill{nullptr, {}, {static_cast<Bits<T>*>(out.data()), s.unit, s.columns}};
  std::memcpy(&fill.value, &filler, sizeof filler);
  along.with_places([&](auto places) { scatter_each(places, s.entries, s.width, fill, place); });
}

// `out` with the strides of its sizes. Dimensions of size 1 may have other strides.
Tensor with_plain_strides(const Tensor& out) {
  return alias_with_geometry(out, out.sizes(), contiguous_strides(out.sizes()),
                             out.storage_offset());
}

template <class T>
void index_put_integer_cuda(const Tensor& /*self*/, TensorList indices, const Tensor& values,
                            bool accumulate, const Tensor& out) {
  using S = Stored<T>;
  const char* const op = "index_put";
  const shape::IndexGeometry g = shape::index_geometry(op, out, indices);
  const int64_t entries = checked_numel(g.index_sizes);
  if (out.numel() == 0 || entries == 0) return;
  const Place place(out);
  const Tensor target = with_plain_strides(out);
  DimVector others = g.before_dims;
  for (const int64_t d : g.after_dims) others.push_back(d);
  Slices s{entries, 1, 0, target.stride(g.indexed_dims.back()), axes_of(op, target, others)};
  for (const int64_t d : others) s.width *= target.size(d);
  const int64_t first = g.indexed_dims.front();
  s.span = target.size(first) * target.stride(first) / s.unit;

  const Tensor from = aten::expand(apart_from(values, out), g.result);
  const size_t before = g.before_dims.size(), behind = before + g.index_sizes.size();
  Axes of_entries, of_columns;
  for (size_t d = 0; d < g.result.size(); ++d)
    (d >= before && d < behind ? of_entries : of_columns)
        .add(op, from.sizes()[d], from.strides()[d]);

  with_entries(op, on_device(kIndexPut), target, indices, g, s.unit, out, place, [&](auto places) {
    if (accumulate) {
      const Combine<S> add{{static_cast<const S*>(from.data()), of_entries, of_columns},
                           {static_cast<S*>(out.data()), s.unit, s.columns}};
      scatter_fold(sorted_entries(op, places, s.entries, s.span, place), s.span, s.width, add,
                   place);
      return;
    }
    using Unit = Bits<T>;
    const TargetElements<Unit> to{static_cast<Unit*>(out.data()), s.unit, s.columns};
    const auto* const data = static_cast<const Unit*>(from.data());
    if (values.numel() == 1)
      return scatter_each(places, s.entries, s.width, Fill<Unit>{data, {}, to}, place);
    const Assign<Unit> assign{{data, of_entries, of_columns}, to};
    scatter_entries(op, places, s.entries, s.span, s.width, assign, s.entries > 1, place);
  });
}

const auto index_put_registered = register_cuda<aten::ops::_index_put_integer>(
    AllTypes(), []<class T>() { return &index_put_integer_cuda<T>; }, "index_put_integer_cuda");
const auto index_add_registered = register_cuda<aten::ops::index_add>(
    AllTypes(), []<class T>() { return &index_add_cuda<T>; }, "index_add_cuda");
const auto index_copy_registered = register_cuda<aten::ops::index_copy>(
    AllTypes(), []<class T>() { return &index_copy_cuda<T>; }, "index_copy_cuda");
const auto index_fill_registered = register_cuda<aten::ops::index_fill_int_Scalar>(
    AllTypes(), []<class T>() { return &index_fill_cuda<T>; }, "index_fill_cuda");

}  // namespace
}  // namespace treadle::cuda
