// The distinct elements of a tensor, or rows of a matrix: the first occurrence of each, the inverse
// index of each element, and the count of each.
//
// Elements are sorted, runs of equal ones are numbered, and the host waits for the number of runs.
// NaN equals nothing, itself included.
//
// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "aten/backend/cuda/kernels/scan.cuh"
#include "aten/backend/cuda/kernels/sorted_lines.cuh"
#include "aten/ops/_unique2.h"
#include "aten/ops/_unique_rows.h"
#include "aten/ops/_unique_runs.h"
#include "aten/ops/contiguous.h"

namespace treadle::cuda {
namespace {

// Runs of equal rows in order; `numbers[i]`: how many have begun up to row i of the order.
template <class T>
struct NumberRuns {
  using State = int64_t;
  const T* from;
  int64_t width;
  const uint32_t* order;
  int64_t* numbers;
  __device__ bool begins(int64_t i) const {
    if (i == 0) return true;
    const T *const a = from + order[i] * width, *const b = from + order[i - 1] * width;
    for (int64_t k = 0; k < width; ++k)
      if (!(widened(a[k]) == widened(b[k]))) return true;
    return false;
  }
  __device__ State load(int64_t, int64_t i) const { return begins(i); }
  __device__ State join(State a, State b) const { return a + b; }
  __device__ void store(int64_t, int64_t i, State all) const { numbers[i] = all; }
};

// first[run], behind[run]: where in the order it ends; inverse[row]. All may be null.
__global__ void describe_runs(const uint32_t* order, const int64_t* numbers, int64_t n,
                              int64_t* first, int64_t* behind, int64_t* inverse) {
  for_each_element(n, [=](int64_t i) {
    const int64_t run = numbers[i] - 1;
    if (inverse) inverse[order[i]] = run;
    if (first && (i == 0 || numbers[i - 1] != numbers[i])) first[run] = order[i];
    if (behind && (i + 1 == n || numbers[i + 1] != numbers[i])) behind[run] = i + 1;
  });
}
__global__ void count_runs(const int64_t* behind, int64_t runs, int64_t* counts) {
  for_each_element(
      runs, [=](int64_t run) { counts[run] = behind[run] - (run > 0 ? behind[run - 1] : 0); });
}
template <class T>
__global__ void take_values(const T* from, const int64_t* first, int64_t n, T* out) {
  for_each_element(n, [=](int64_t i) { out[i] = from[first[i]]; });
}

struct Runs {
  Tensor first, counts;
};
// `inverse` and the counts are skipped if they are not requested.
template <class T>
Runs describe(const T* from, int64_t width, const SortedPairs& pairs, int64_t* inverse,
              bool with_counts, const Place& place) {
  const int64_t n = pairs.size();
  const auto make = [&](int64_t size) {
    return empty_tensor({size}, ScalarType::Int64, place.where);
  };
  if (n == 0) return {make(0), make(0)};
  const Tensor numbers = make(n);
  auto* const number = numbers.data_as<int64_t>();
  const uint32_t* const order = pairs.positions();
  scan_lines(NumberRuns<T>{from, width, order, number}, 1, n, false, place);
  const int64_t runs = number_at<int64_t>(numbers, n - 1);
  const Runs result{make(runs), make(with_counts ? runs : 0)};
  const Tensor behind = make(with_counts ? runs : 0);
  describe_runs<<<blocks_for(n), kBlock, 0, place.stream>>>(
      order, number, n, result.first.data_as<int64_t>(),
      with_counts ? behind.data_as<int64_t>() : nullptr, inverse);
  check_launched();
  if (!with_counts) return result;
  count_runs<<<blocks_for(runs), kBlock, 0, place.stream>>>(behind.data_as<int64_t>(), runs,
                                                            result.counts.data_as<int64_t>());
  check_launched();
  return result;
}

// The values, inverse indices and counts of the runs of an order of the elements.
template <class T>
std::tuple<Tensor, Tensor, Tensor> described_values(const Tensor& input, const SortedPairs& pairs,
                                                    bool return_inverse, bool return_counts,
                                                    const Place& place) {
  const T* const from = input.data_as<T>();
  const Tensor inverse =
      empty_tensor(return_inverse ? input.sizes() : IntList({0}), ScalarType::Int64, place.where);
  const Runs runs = describe(from, 1, pairs, return_inverse ? inverse.data_as<int64_t>() : nullptr,
                             return_counts, place);
  const int64_t n = runs.first.numel();
  const Tensor values = empty_tensor({n}, input.dtype(), place.where);
  if (n > 0) {
    take_values<<<blocks_for(n), kBlock, 0, place.stream>>>(from, runs.first.data_as<int64_t>(), n,
                                                            values.data_as<T>());
    check_launched();
  }
  return {values, inverse, runs.counts};
}

template <class T>
std::tuple<Tensor, Tensor, Tensor> unique_cuda(const Tensor& self, bool /*sorted*/,
                                               bool return_inverse, bool return_counts) {
  const Place place(self);
  const Tensor input = aten::contiguous(self);
  const SortedPairs pairs =
      sorted_lines("unique", input.data_as<T>(), Lines{1, self.numel(), 1}, false, place);
  return described_values<T>(input, pairs, return_inverse, return_counts, place);
}

// ---- rows ----

__global__ void number_rows(int64_t n, uint32_t* positions) {
  for_each_element(n, [=](int64_t i) { positions[i] = static_cast<uint32_t>(i); });
}
template <class T>
__global__ void make_column_keys(const T* column, int64_t width, const uint32_t* order, int64_t n,
                                 uint64_t* keys) {
  for_each_element(n, [=](int64_t i) { keys[i] = cpu::ordered_key(column[order[i] * width]); });
}

// In lexicographic order: stably by each column, from the last one.
template <class T>
SortedPairs ordered_rows(const T* from, int64_t rows, int64_t width, bool sorted,
                         const Place& place) {
  SortedPairs pairs("unique", rows, place.where, place.stream);
  if (rows == 0) return pairs;
  number_rows<<<blocks_for(rows), kBlock, 0, place.stream>>>(rows, pairs.positions());
  check_launched();
  for (int64_t column = width - 1; sorted && column >= 0; --column) {
    make_column_keys<<<blocks_for(rows), kBlock, 0, place.stream>>>(
        from + column, width, static_cast<const uint32_t*>(pairs.positions()), rows, pairs.keys());
    check_launched();
    pairs.sort(8 * static_cast<int>(sizeof(T)));
  }
  return pairs;
}

template <class T>
std::tuple<Tensor, Tensor, Tensor> unique_rows_cuda(const Tensor& self, bool sorted,
                                                    bool return_inverse, bool return_counts) {
  const Place place(self);
  const Tensor input = aten::contiguous(self);
  const T* const from = input.data_as<T>();
  const int64_t rows = self.size(0), width = self.size(1);
  const Tensor inverse = empty_tensor({return_inverse ? rows : 0}, ScalarType::Int64, place.where);
  const Runs runs =
      describe(from, width, ordered_rows(from, rows, width, sorted, place),
               return_inverse ? inverse.data_as<int64_t>() : nullptr, return_counts, place);
  return {runs.first, inverse, runs.counts};
}

template <class T>
std::tuple<Tensor, Tensor, Tensor> unique_runs_cuda(const Tensor& self, bool return_inverse,
                                                    bool return_counts) {
  const Place place(self);
  const Tensor input = aten::contiguous(self);
  const SortedPairs as_they_lie = ordered_rows(input.data_as<T>(), self.numel(), 1, false, place);
  return described_values<T>(input, as_they_lie, return_inverse, return_counts, place);
}

const auto unique_registered = register_cuda<aten::ops::_unique2>(
    DeclaredTypes<aten::ops::_unique2>(), []<class T>() { return &unique_cuda<T>; }, "unique_cuda");
const auto unique_rows_registered = register_cuda<aten::ops::_unique_rows>(
    DeclaredTypes<aten::ops::_unique_rows>(), []<class T>() { return &unique_rows_cuda<T>; },
    "unique_rows_cuda");
const auto unique_runs_registered = register_cuda<aten::ops::_unique_runs>(
    DeclaredTypes<aten::ops::_unique_runs>(), []<class T>() { return &unique_runs_cuda<T>; },
    "unique_runs_cuda");

}  // namespace
}  // namespace treadle::cuda
