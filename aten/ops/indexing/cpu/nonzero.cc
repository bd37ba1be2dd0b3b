// nonzero: the coordinates of the nonzero elements.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/nonzero.h"
#include "aten/backend/cpu/dim_slices.h"
#include "aten/ops/contiguous.h"

namespace treadle::cpu {
namespace {

template <class T>
bool is_nonzero(const T& value) {
  return element_value(value) != T(0);
}

// Counted in runs that a byte has room for, so that a vector counts as many as it has bytes.
template <class T>
int64_t count_nonzero(const T* values, int64_t count) {
  constexpr int64_t kRun = 128;
  int64_t total = 0, i = 0;
  for (; i + kRun <= count; i += kRun) {
    uint8_t run = 0;
    for (int64_t j = 0; j < kRun; ++j) run = static_cast<uint8_t>(run + is_nonzero(values[i + j]));
    total += run;
  }
  for (; i < count; ++i) total += is_nonzero(values[i]);
  return total;
}

// Elements that are left out at once where all are zero, as most are in many tensors.
constexpr int64_t kBlock = 16;

template <class T>
bool has_nonzero(const T* values) {
  unsigned any = 0;
  for (int64_t j = 0; j < kBlock; ++j) any |= static_cast<unsigned>(is_nonzero(values[j]));
  return any != 0;
}

// Calls f(i) for elements from `first` up to `last`, among them all nonzero ones.
template <class T, class F>
void each_candidate(const T* values, int64_t first, int64_t last, F&& f) {
  int64_t i = first;
  for (; i + kBlock <= last; i += kBlock) {
    if (!has_nonzero(values + i)) continue;
    for (int64_t j = i; j < i + kBlock; ++j) f(j);
  }
  for (; i < last; ++i) f(i);
}

// Chunks are counted, then each writes where the ones before it end.
template <class T>
Tensor nonzero_cpu(const Tensor& self) {
  const Tensor input = aten::contiguous(self);
  const T* const values = input.data_as<T>();
  const int64_t numel = input.numel();
  const int64_t rank = input.dim();
  const int64_t chunks = (numel + kGrain - 1) / kGrain;
  std::vector<int64_t> starts(chunks + 1, 0);
  parallel_chunks(chunks, [&](int64_t chunk) {
    const int64_t first = chunk * kGrain;
    starts[chunk + 1] = count_nonzero(values + first, std::min(numel - first, kGrain));
  });
  for (int64_t chunk = 0; chunk < chunks; ++chunk) starts[chunk + 1] += starts[chunk];
  const Tensor out = empty_cpu({starts[chunks], rank}, ScalarType::Int64);
  if (rank == 0) return out;
  const IntList sizes = input.sizes();
  const int64_t width = sizes.back();
  int64_t* const coordinates = out.data_as<int64_t>();
  parallel_chunks(chunks, [&](int64_t chunk) {
    // `values` may have changed since they were counted. Uncounted positions are left out, and an
    // arbitrary position fills the rest.
    int64_t* to = coordinates + starts[chunk] * rank;
    int64_t left = starts[chunk + 1] - starts[chunk];
    const int64_t end = std::min(numel, (chunk + 1) * kGrain);
    if (rank == 1) {
      // Every position is written but kept only if its element is nonzero, which needs no branch,
      // until all counted ones are there.
      int64_t* const stop = to + left;
      int64_t i = chunk * kGrain;
      for (; i < end && to < stop; ++i) {
        *to = i;
        to += is_nonzero(values[i]);
      }
      std::fill(to, stop, i - 1);
      return;
    }
    DimVector leading(sizes.slice(0, static_cast<size_t>(rank - 1)));
    const auto seek = [&](int64_t row) {
      unravel(sizes.slice(0, leading.size()), row, leading.data());
    };
    // Columns of one row. Every column is written but kept only if its element is nonzero, which
    // needs no branch.
    std::vector<int64_t> columns(static_cast<size_t>(std::min(width, kGrain)) + 1);
    for (int64_t i = chunk * kGrain; i < end && left > 0;) {
      const int64_t row = i / width;
      const int64_t stop = std::min(end, (row + 1) * width);
      int64_t count = 0;
      each_candidate(values, i, stop, [&](int64_t at) {
        columns[count] = at - row * width;
        count += is_nonzero(values[at]);
      });
      i = stop;
      count = std::min(count, left);
      left -= count;
      seek(row);
      for (int64_t k = 0; k < count; ++k) {
        to = std::copy(leading.begin(), leading.end(), to);
        *to++ = columns[k];
      }
    }
    seek((end - 1) / width);
    for (; left > 0; --left) {
      to = std::copy(leading.begin(), leading.end(), to);
      *to++ = (end - 1) % width;
    }
  });
  return out;
}

const auto nonzero_registered = register_kernels<aten::ops::nonzero, DeviceType::CPU>(
    []<class T>() { return &nonzero_cpu<T>; }, "nonzero_cpu");

}  // namespace
}  // namespace treadle::cpu
