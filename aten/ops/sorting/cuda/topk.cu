// topk, kthvalue, median and nanmedian: the elements at given ranks along a dimension, without a
// full sort. A block reads a line once for each byte of the keys (aten/ops/sorting/cpu/sort_key.h)
// and counts the values of that byte, until the key at the rank is known. A few long lines would
// leave most of the device idle, so they are sorted instead.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/sorted_lines.cuh"
#include "aten/ops/contiguous.h"
#include "aten/ops/kthvalue.h"
#include "aten/ops/median.h"
#include "aten/ops/nanmedian.h"
#include "aten/ops/topk.h"

namespace treadle::cuda {
namespace {

bool better_sorted(const Lines& lines) {
  constexpr int64_t kFewLines = 16, kLongLine = 1 << 15;
  return (lines.count <= kFewLines && lines.size >= kLongLine) ||
         lines.size > int64_t{UINT32_MAX};  // blocks count in 32 bits
}

// The elements of a block's line as keys.
template <class T>
struct LineKeys {
  using Key = cpu::KeyType<T>;
  const T* from;
  Lines lines;
  int64_t line;
  bool descending;
  __device__ Key at(int64_t j) const {
    return cpu::ordered_key(from[lines.at(line, j)], descending);
  }
};

// The key that `rank` others come before, and how many are less than it; for all threads.
template <class Key>
struct Selected {
  Key key;
  int64_t less;
};
template <class T>
__device__ Selected<cpu::KeyType<T>> select_key(const LineKeys<T>& keys, int64_t rank) {
  using Key = cpu::KeyType<T>;
  static_assert(kBlock == 256);  // a thread for each value of a byte
  __shared__ unsigned counts[kBlock];
  __shared__ int byte;
  __shared__ int64_t before;
  uint64_t found = 0;
  int64_t less = 0;
  for (int shift = 8 * static_cast<int>(sizeof(Key)) - 8; shift >= 0; shift -= 8) {
    __syncthreads();
    counts[threadIdx.x] = 0;
    __syncthreads();
    for (int64_t j = threadIdx.x; j < keys.lines.size; j += kBlock) {
      const uint64_t key = keys.at(j);
      // In two steps, because a shift by all bits of a 64-bit key is undefined.
      if (((key ^ found) >> shift) >> 8 == 0)
        atomicAdd(&counts[static_cast<unsigned>(key >> shift) & 255u], 1u);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int64_t seen = less;
      int b = 0;
      while (b < 255 && seen + counts[b] <= rank) seen += counts[b++];
      byte = b;
      before = seen;
    }
    __syncthreads();
    found |= static_cast<uint64_t>(byte) << shift;
    less = before;
  }
  return {static_cast<Key>(found), less};
}

// The sum over the threads before this one, and over all of them.
struct Before {
  int64_t here, all;
};
__device__ inline Before sum_before(int64_t mine) {
  __shared__ int64_t sums[kBlock];
  __syncthreads();
  sums[threadIdx.x] = mine;
  for (int step = 1; step < kBlock; step *= 2) {
    __syncthreads();
    const int64_t left = static_cast<int>(threadIdx.x) >= step ? sums[threadIdx.x - step] : 0;
    __syncthreads();
    sums[threadIdx.x] += left;
  }
  __syncthreads();
  return {sums[threadIdx.x] - mine, sums[kBlock - 1]};
}

// The part of a line that a thread looks through where the order counts.
struct Part {
  int64_t begin, end;
  __device__ explicit Part(int64_t size) {
    const int64_t each = (size + kBlock - 1) / kBlock;
    begin = each * threadIdx.x < size ? each * threadIdx.x : size;
    end = begin + each < size ? begin + each : size;
  }
};

// ---- topk ----

// So many of a line that a block puts them in order by comparing each with all.
constexpr int64_t kMaxRanked = 512;

// A block for each line. Among equal elements the first ones are taken.
template <class T>
__global__ void topk_kernel(const T* from, Lines lines, int64_t k, bool largest, T* values,
                            int64_t* indices) {
  using Key = cpu::KeyType<T>;
  __shared__ Key taken[kMaxRanked];
  __shared__ int64_t places[kMaxRanked];
  const LineKeys<T> keys{from, lines, static_cast<int64_t>(blockIdx.x), largest};
  const Selected<Key> last = select_key(keys, k - 1);
  const Part part(lines.size);
  int64_t less = 0, equal = 0;
  for (int64_t j = part.begin; j < part.end; ++j) {
    const Key key = keys.at(j);
    less += key < last.key;
    equal += key == last.key;
  }
  // The lesser ones first, then the equal ones, both in the order of the line.
  int64_t slot = sum_before(less).here, equal_slot = last.less + sum_before(equal).here;
  for (int64_t j = part.begin; j < part.end; ++j) {
    const Key key = keys.at(j);
    if (key > last.key) continue;
    int64_t& next = key < last.key ? slot : equal_slot;
    if (next < k) {
      taken[next] = key;
      places[next] = j;
    }
    ++next;
  }
  __syncthreads();
  const Lines results{lines.count, k, lines.inner};
  for (int64_t s = threadIdx.x; s < k; s += kBlock) {
    int64_t rank = 0;
    for (int64_t other = 0; other < k; ++other)
      rank += taken[other] < taken[s] || (taken[other] == taken[s] && other < s);
    const int64_t to = results.at(keys.line, rank);
    values[to] = from[lines.at(keys.line, places[s])];
    indices[to] = places[s];
  }
}

// They are in order even if the call does not request it.
template <class T>
void topk_cuda(const Tensor& self, int64_t k, int64_t dim, bool largest, bool /*sorted*/,
               const Tensor& values, const Tensor& indices) {
  if (values.numel() == 0) return;
  if (self.dim() == 0) k = 1;  // the results have one element, whatever k
  const Place place(values);
  const Tensor input = aten::contiguous(self);
  const Lines lines = lines_of(self.sizes(), dim);
  const T* const from = input.data_as<T>();
  if (k > kMaxRanked || better_sorted(lines)) {
    put_sorted(sorted_lines("topk", from, lines, largest, place), from, lines, k, values,
               indices.data_as<int64_t>(), place);
    return;
  }
  topk_kernel<<<block_each(lines.count), kBlock, 0, place.stream>>>(
      from, lines, k, largest, values.data_as<T>(), indices.data_as<int64_t>());
  check_launched();
}

// ---- one element of each line ----

enum class Rank { Given, Median, NanMedian };

// The rank in a line of `size` elements, the last of which are `nans`. The median is the first NaN,
// if there are any. nanmedian ignores NaN if there are other elements.
template <Rank rank>
__device__ int64_t place_of(int64_t given, int64_t size, int64_t nans) {
  if (rank == Rank::Given) return given;
  const int64_t numbers = size - nans;
  if (rank == Rank::Median && nans > 0) return numbers;
  return numbers > 0 ? (numbers - 1) / 2 : 0;
}

// The selection from sorted lines.
template <class T, Rank rank>
__global__ void select_sorted(const uint32_t* positions, const T* from, Lines lines, int64_t given,
                              T* values, int64_t* indices) {
  for_each_element(lines.count, [=](int64_t line) {
    const int64_t first = line * lines.size;
    const auto index = [=](int64_t j) { return positions[first + j] - first; };
    int64_t nans = 0;
    if constexpr (rank != Rank::Given && is_floating_type<T>) {
      int64_t low = 0, high = lines.size;  // the first NaN
      while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const auto v = widened(from[lines.at(line, index(middle))]);
        if (v != v)
          high = middle;
        else
          low = middle + 1;
      }
      nans = lines.size - low;
    }
    const int64_t chosen = index(place_of<rank>(given, lines.size, nans));
    values[line] = from[lines.at(line, chosen)];
    indices[line] = chosen;
  });
}

// A block for each line. NaN has the largest key.
template <class T, Rank rank>
__global__ void select_kernel(const T* from, Lines lines, int64_t given, T* values,
                              int64_t* indices) {
  using Key = cpu::KeyType<T>;
  __shared__ int64_t chosen;
  const LineKeys<T> keys{from, lines, static_cast<int64_t>(blockIdx.x), false};
  int64_t nans = 0;
  if constexpr (rank != Rank::Given && is_floating_type<T>) {
    for (int64_t j = threadIdx.x; j < lines.size; j += kBlock)
      nans += keys.at(j) == static_cast<Key>(~Key{0});
    nans = sum_before(nans).all;
  }
  const int64_t place = place_of<rank>(given, lines.size, nans);
  const Selected<Key> selected = select_key(keys, place);
  const Part part(lines.size);
  int64_t equal = 0;
  for (int64_t j = part.begin; j < part.end; ++j) equal += keys.at(j) == selected.key;
  int64_t skip = place - selected.less - sum_before(equal).here;
  if (skip >= 0 && skip < equal) {
    for (int64_t j = part.begin; j < part.end; ++j) {
      if (keys.at(j) == selected.key && skip-- == 0) chosen = j;
    }
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  values[keys.line] = from[lines.at(keys.line, chosen)];
  indices[keys.line] = chosen;
}
template <class T, Rank rank>
void select_one(const char* op, const Tensor& self, int64_t dim, int64_t given,
                const Tensor& values, const Tensor& indices) {
  if (values.numel() == 0) return;
  const Place place(values);
  const Tensor input = aten::contiguous(self);
  const Lines lines = lines_of(self.sizes(), dim);
  const T* const from = input.data_as<T>();
  if (better_sorted(lines)) {
    const SortedPairs pairs = sorted_lines(op, from, lines, false, place);
    select_sorted<T, rank><<<blocks_for(lines.count), kBlock, 0, place.stream>>>(
        static_cast<const uint32_t*>(pairs.positions()), from, lines, given, values.data_as<T>(),
        indices.data_as<int64_t>());
    return check_launched();
  }
  select_kernel<T, rank><<<block_each(lines.count), kBlock, 0, place.stream>>>(
      from, lines, given, values.data_as<T>(), indices.data_as<int64_t>());
  check_launched();
}

template <class T>
void kthvalue_cuda(const Tensor& self, int64_t k, int64_t dim, bool /*keepdim*/,
                   const Tensor& values, const Tensor& indices) {
  select_one<T, Rank::Given>("kthvalue", self, dim, k - 1, values, indices);
}
template <class T>
void median_cuda(const Tensor& self, int64_t dim, bool /*keepdim*/, const Tensor& values,
                 const Tensor& indices) {
  select_one<T, Rank::Median>("median", self, dim, 0, values, indices);
}
template <class T>
void nanmedian_cuda(const Tensor& self, int64_t dim, bool /*keepdim*/, const Tensor& values,
                    const Tensor& indices) {
  select_one<T, Rank::NanMedian>("nanmedian", self, dim, 0, values, indices);
}

const auto topk_registered = register_cuda<aten::ops::topk>(
    DeclaredTypes<aten::ops::topk>(), []<class T>() { return &topk_cuda<T>; }, "topk_cuda");
const auto kthvalue_registered = register_cuda<aten::ops::kthvalue>(
    DeclaredTypes<aten::ops::kthvalue>(), []<class T>() { return &kthvalue_cuda<T>; },
    "kthvalue_cuda");
const auto median_registered = register_cuda<aten::ops::median_dim>(
    DeclaredTypes<aten::ops::median_dim>(), []<class T>() { return &median_cuda<T>; },
    "median_cuda");
const auto nanmedian_registered = register_cuda<aten::ops::nanmedian_dim>(
    DeclaredTypes<aten::ops::nanmedian_dim>(), []<class T>() { return &nanmedian_cuda<T>; },
    "nanmedian_cuda");

}  // namespace
}  // namespace treadle::cuda
