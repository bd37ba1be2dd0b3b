// searchsorted: the positions of values in sorted sequences, by bisection.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/_searchsorted.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/sorting/cpu/sort_key.h"
#include "aten/ops/to.h"

namespace treadle::cuda {
namespace {

__device__ const char kSearchSorted[] = "searchsorted";

// Sequences of `length` elements, in the order of `sorters` where those are not null.
template <class T>
struct Sequences {
  const T* elements;
  const int64_t* sorters;
  int64_t length;
  FaultPlace fault;

  __device__ cpu::KeyType<T> key(int64_t first, int64_t at) const {
    if (!sorters) return cpu::ordered_key(elements[first + at]);
    const int64_t place = sorters[first + at];
    if (place >= 0 && place < length) return cpu::ordered_key(elements[first + place]);
    record_fault(fault, kIndexOutOfRange, kSearchSorted, 0, length, place);
    return 0;
  }
  // The number of entries before `value`, or before or equal to it if `right`.
  __device__ int64_t place_of(int64_t first, T value, bool right) const {
    const cpu::KeyType<T> wanted = cpu::ordered_key(value);
    int64_t low = 0, count = length;
    while (count > 0) {
      const int64_t half = count / 2, middle = low + half;
      const cpu::KeyType<T> entry = key(first, middle);
      if (right ? entry <= wanted : entry < wanted) {
        low = middle + 1;
        count -= half + 1;
      } else {
        count = half;
      }
    }
    return low;
  }
};

template <class T, class Index>
__global__ void search_kernel(Sequences<T> sequences, const T* values, int64_t n,
                              int64_t per_sequence, bool right, Index* out) {
  for_each_element(n, [=](int64_t i) {
    const int64_t first = i / per_sequence * sequences.length;
    out[i] = static_cast<Index>(sequences.place_of(first, values[i], right));
  });
}

template <class T>
void searchsorted_cuda(const Tensor& sorted_sequence, const Tensor& self, bool out_int32,
                       bool right, std::optional<std::string_view> side, const Tensor& sorter,
                       const Tensor& out) {
  const int64_t n = out.numel();
  if (n == 0) return;
  const Place place(out);
  const Tensor sequence = aten::contiguous(sorted_sequence), values = aten::contiguous(self);
  const Tensor order =
      sorter.defined() ? aten::contiguous(aten::to(sorter, ScalarType::Int64)) : Tensor();
  const Sequences<T> sequences{sequence.data_as<T>(),
                               order.defined() ? order.data_as<int64_t>() : nullptr,
                               sequence.sizes().back(), faults().place(place.device)};
  // A sequence of one dimension is for all values.
  const int64_t per_sequence = sequence.dim() == 1 ? n : values.sizes().back();
  const bool behind = right || (side && *side == "right");
  const auto search = [&]<class Index>(Index) {
    search_kernel<<<blocks_for(n), kBlock, 0, place.stream>>>(
        sequences, static_cast<const T*>(values.data_as<T>()), n, per_sequence, behind,
        out.data_as<Index>());
    check_launched();
  };
  if (out_int32)
    search(int32_t{});
  else
    search(int64_t{});
}

const auto searchsorted_registered = register_cuda<aten::ops::_searchsorted>(
    DeclaredTypes<aten::ops::_searchsorted>(), []<class T>() { return &searchsorted_cuda<T>; },
    "searchsorted_cuda");

}  // namespace
}  // namespace treadle::cuda
