// embedding_bag: the sum, mean or maximum of rows of a table, bag by bag, without a copy of the
// rows. A thread computes one column of a bag, over the indices in their order.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/_embedding_bag.h"
#include "aten/ops/contiguous.h"

namespace treadle::cuda {
namespace {

__device__ const char kBag[] = "embedding_bag";

enum Mode : int64_t { kSum = 0, kMean = 1, kMax = 2 };

struct Bags {
  const int64_t *index, *offsets;
  int64_t bags, listed, count, rows, padding;  // `listed`: offsets, of which the last may be an end
  FaultPlace fault;

  // The start of bag b (b = bags: the end of the last), within the indices.
  __device__ int64_t bound(int64_t b) const {
    const int64_t at = b < listed ? offsets[b] : count;
    return at < 0 ? 0 : at > count ? count : at;
  }
  __device__ void check_offset(int64_t b) const {
    if (b == 0) {
      if (bags > 0 && offsets[0] != 0) record_fault(fault, kFirstOffset, kBag, 0, 0, offsets[0]);
      return;
    }
    const int64_t before = offsets[b - 1], here = b < listed ? offsets[b] : count;
    if (here < before || here > count)
      record_fault(fault, kOffsetOutOfOrder, kBag, before, count, here);
  }
};

// The bag of each index, and the range check of all indices.
__global__ void list_bags(Bags bags, int64_t* bag_of) {
  for_each_element(bags.count, [=](int64_t i) {
    const int64_t row = bags.index[i];
    if (row < 0 || row >= bags.rows)
      record_fault(bags.fault, kIndexOutOfRange, kBag, 0, bags.rows, row);
    // The last bag that begins at or before i; indices behind all bags count to the last.
    int64_t first = 0, behind = bags.bags > 0 ? bags.bags - 1 : 0;
    while (first < behind) {
      const int64_t middle = (first + behind + 1) / 2;
      if (bags.bound(middle) <= i)
        first = middle;
      else
        behind = middle - 1;
    }
    bag_of[i] = first;
  });
}

template <class T>
__global__ void fold_bags(Bags bags, const T* weight, int64_t row_stride, int64_t column_stride,
                          int64_t width, int64_t mode, const T* factors, T* out, int64_t* bag_size,
                          int64_t* largest) {
  using C = Computed<T>;
  for_each_element(bags.bags * width, [=](int64_t i) {
    const int64_t bag = i / width, column = i % width;
    C sum = 0;
    int64_t used = 0, from = -1;
    for (int64_t k = bags.bound(bag); k < bags.bound(bag + 1); ++k) {
      const int64_t row = bags.index[k];
      if (row < 0 || row >= bags.rows || row == bags.padding) continue;
      const C value = widened(weight[row * row_stride + column * column_stride]);
      if (mode != kMax) {
        sum += factors ? value * widened(factors[k]) : value;
      } else if (used == 0 || value > sum || value != value) {
        sum = value;
        from = row;
      }
      ++used;
    }
    if (mode == kMean && used > 0) sum = sum / static_cast<C>(used);
    out[i] = narrowed<T>(sum);
    if (mode == kMax) largest[i] = from;
  });
  // The sizes do not depend on columns, of which there may be none.
  for_each_element(bags.bags, [=](int64_t bag) {
    bags.check_offset(bag);
    if (bag + 1 == bags.bags) bags.check_offset(bags.bags);
    int64_t used = 0;
    for (int64_t k = bags.bound(bag); k < bags.bound(bag + 1); ++k)
      used += bags.index[k] != bags.padding;
    bag_size[bag] = used;
  });
}

template <class T>
void embedding_bag_cuda(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                        bool /*scale_grad_by_freq*/, int64_t mode, bool /*sparse*/,
                        const Tensor& per_sample_weights, bool /*include_last_offset*/,
                        int64_t padding_idx, const Tensor& out, const Tensor& bag_of,
                        const Tensor& bag_size, const Tensor& max_indices) {
  const Tensor index = aten::contiguous(indices), starts = aten::contiguous(offsets);
  const Tensor factors =
      per_sample_weights.defined() ? aten::contiguous(per_sample_weights) : Tensor();
  const int64_t width = out.size(1);
  const Place place(weight);
  const Bags bags{index.data_as<int64_t>(),
                  starts.data_as<int64_t>(),
                  out.size(0),
                  starts.numel(),
                  index.numel(),
                  weight.size(0),
                  padding_idx,
                  faults().place(place.device)};
  if (bags.count > 0) {
    list_bags<<<blocks_for(bags.count), kBlock, 0, place.stream>>>(bags, bag_of.data_as<int64_t>());
    check_launched();
  }
  if (bags.bags == 0) return;
  fold_bags<T><<<blocks_for(bags.bags * std::max<int64_t>(1, width)), kBlock, 0, place.stream>>>(
      bags, weight.data_as<T>(), weight.stride(0), weight.stride(1), width, mode,
      factors.defined() ? factors.data_as<T>() : nullptr, out.data_as<T>(),
      bag_size.data_as<int64_t>(), mode == kMax ? max_indices.data_as<int64_t>() : nullptr);
  check_launched();
}

const auto registered = register_cuda<aten::ops::_embedding_bag>(
    Floats(), []<class T>() { return &embedding_bag_cuda<T>; }, "embedding_bag_cuda");

}  // namespace
}  // namespace treadle::cuda
