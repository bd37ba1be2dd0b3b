// Max pooling over one to three dimensions, and the operators on its indices: its gradient, the
// gradient of that, and unpooling.
//
// An index is the position of a value within its plane. A window is searched in two steps: the rows
// under it, for all columns at once, then the columns. Among equal values the first in the order of
// the plane wins; among several NaN, the last.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cpu/long_sums.h"
#include "aten/backend/cpu/read_once.h"
#include "aten/ops/_max_pool_backward.h"
#include "aten/ops/_max_pool_gather.h"
#include "aten/ops/_max_unpool.h"
#include "aten/ops/adaptive_max_pool1d.h"
#include "aten/ops/adaptive_max_pool2d.h"
#include "aten/ops/adaptive_max_pool3d.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/convolution/cpu/max_pool_pixels.h"
#include "aten/ops/convolution/cpu/pool_windows.h"
#include "aten/ops/max_pool1d_with_indices.h"
#include "aten/ops/max_pool2d_with_indices.h"
#include "aten/ops/max_pool3d_with_indices.h"
#include "aten/ops/reductions/cpu/extreme_search.h"

namespace treadle::cpu {
namespace {

// Windows with at least so many neighbours are searched by vectors.
constexpr int64_t kLongWindow = 24;

// The largest value of each column under the rows of one window, and its row.
template <class C>
struct Columns {
  std::vector<C> value;
  std::vector<int64_t> row;
};

template <class T, class C>
void max_rows(const T* plane, const PoolPlanes& p, const PoolAxes& axes, int64_t z, int64_t y,
              Columns<C>& columns) {
  const int64_t width = p.in[2];
  C* const top = columns.value.data();
  int64_t* const at = columns.row.data();
  bool first = true;
  for (int64_t i = axes[0].begin[z]; i < axes[0].end[z]; i += axes[0].step) {
    for (int64_t j = axes[1].begin[y]; j < axes[1].end[y]; j += axes[1].step) {
      const int64_t row = i * p.in[1] + j;
      const T* from = plane + row * width;
      if (first) {
        for (int64_t x = 0; x < width; ++x) top[x] = static_cast<C>(from[x]);
        std::fill_n(at, width, row);
        first = false;
        continue;
      }
      for (int64_t x = 0; x < width; ++x) {
        const C v = static_cast<C>(from[x]);
        const bool take = v > top[x] || v != v;
        top[x] = take ? v : top[x];
        at[x] = take ? row : at[x];
      }
    }
  }
}

template <class T, class C>
void max_columns(const PoolPlanes& p, const PoolAxis& axis, const Columns<C>& columns, T* values,
                 int64_t* indices) {
  for (int64_t x = 0; x < p.out[2]; ++x) {
    int64_t k = axis.begin[x];
    C top = columns.value[k];
    int64_t best = columns.row[k] * p.in[2] + k;
    for (k += axis.step; k < axis.end[x]; k += axis.step) {
      const C v = columns.value[k];
      const int64_t at = columns.row[k] * p.in[2] + k;
      const bool take = v != v ? top == top || at > best : v > top || (v == top && at < best);
      if (take) {
        top = v;
        best = at;
      }
    }
    values[x] = static_cast<T>(top);
    indices[x] = best;
  }
}

// The position of the largest of row[begin], row[begin + step], ... below `end`.
template <class T>
int64_t largest_of(const T* row, int64_t begin, int64_t end, int64_t step) {
  using C = compute_type<T>;
  if constexpr (simd::kHasExtremeSearch<T>) {
    if (step == 1 && end - begin >= kLongWindow) {
      int64_t best = begin + simd::position_of_extreme(row + begin, end - begin, true);
      if (row[best] != row[best]) {
        for (best = end - 1; best > begin && row[best] == row[best];) --best;
      }
      return best;
    }
  }
  int64_t best = begin;
  C top = static_cast<C>(row[begin]);
  for (int64_t k = begin + step; k < end; k += step) {
    const C v = static_cast<C>(row[k]);
    const bool take = v > top || v != v;
    top = take ? v : top;
    best = take ? k : best;
  }
  return best;
}

// As max_rows and max_columns, under the one row with number `row`.
template <class T>
void max_in_row(const T* plane, const PoolPlanes& p, const PoolAxis& axis, int64_t row, T* values,
                int64_t* indices) {
  const T* const from = plane + row * p.in[2];
  for (int64_t x = 0; x < p.out[2]; ++x) {
    const int64_t best = largest_of(from, axis.begin[x], axis.end[x], axis.step);
    values[x] = from[best];
    indices[x] = row * p.in[2] + best;
  }
}

template <class T>
void max_pool(const Tensor& self, const PoolPlanes& p, const PoolAxes& axes, const Tensor& out,
              const Tensor& indices) {
  using C = compute_type<T>;
  if (by_pixels(out)) return pixels::max_pool<T>(self, axes, out, indices);
  const Tensor input = aten::contiguous(self);
  const bool one_row = p.in[0] == 1 && p.in[1] == 1;
  p.for_each([&](int64_t begin, int64_t end) {
    const size_t width = static_cast<size_t>(p.in[2]);
    Columns<C> columns{std::vector<C>(width), std::vector<int64_t>(width)};
    for (int64_t n = begin; n < end; ++n) {
      const T* plane = input.data_as<T>() + n * p.in_size();
      int64_t at = n * p.out_size();
      for (int64_t z = 0; z < p.out[0]; ++z) {
        for (int64_t y = 0; y < p.out[1]; ++y, at += p.out[2]) {
          T* const values = out.data_as<T>() + at;
          int64_t* const found = indices.data_as<int64_t>() + at;
          if (one_row) {
            max_in_row(plane, p, axes[2], axes[0].begin[z] * p.in[1] + axes[1].begin[y], values,
                       found);
          } else {
            max_rows(plane, p, axes, z, y, columns);
            max_columns(p, axes[2], columns, values, found);
          }
        }
      }
    }
  });
}

template <class T>
void max_pool_cpu(const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                  IntList dilation, bool, const Tensor& out, const Tensor& indices) {
  if (out.numel() == 0) return;
  const PoolPlanes p(self.sizes(), out.sizes(), kernel_size.size());
  max_pool<T>(self, p, sliding_windows(p, kernel_size, stride, padding, dilation), out, indices);
}

template <class T>
void adaptive_max_pool_cpu(const Tensor& self, IntList output_size, const Tensor& out,
                           const Tensor& indices) {
  if (out.numel() == 0) return;
  const PoolPlanes p(self.sizes(), out.sizes(), output_size.size());
  max_pool<T>(self, p, adaptive_windows(p, output_size.size()), out, indices);
}

// Indices of the large plane, one for each element of the small ones.
class PoolIndices {
 public:
  PoolIndices(const char* op, const PoolPlanes& p, const Tensor& indices)
      : op_(op), all_(aten::contiguous(indices)), in_(p.in_size()), out_(p.out_size()) {}

  // Calls visit(index in the large plane, index in the small one) for each index of plane n.
  template <class F>
  void of_plane(int64_t n, F&& visit) const {
    const int64_t* const at = all_.data_as<int64_t>() + n * out_;
    const int64_t in = in_, out = out_;
    for (int64_t o = 0; o < out; ++o) {
      const int64_t i = read_once(at + o);
      if (static_cast<uint64_t>(i) >= static_cast<uint64_t>(in)) [[unlikely]]
        refuse(i);
      visit(i, o);
    }
  }

 private:
  // Out of the loop, where the message would keep the index in memory.
  [[noreturn, gnu::cold, gnu::noinline]] void refuse(int64_t i) const {
    fail<ErrorKind::Runtime>(OpName(op_), "expected indices in [0, ", in_, "), got ", i);
  }

  const char* op_;
  Tensor all_;
  int64_t in_, out_;
};

template <class T>
void max_pool_backward_cpu(const Tensor& grad, const Tensor& indices, IntList input_size,
                           int64_t spatial, const Tensor& out) {
  using C = compute_type<T>;
  using W = wide_type<T>;  // an element may be the largest of as many windows as there are
  if (grad.numel() == 0) return static_cast<void>(std::fill_n(out.data_as<T>(), out.numel(), T(0)));
  if (by_pixels(out)) return pixels::max_pool_backward<T>(grad, indices, out);
  const PoolPlanes p(input_size, grad.sizes(), static_cast<size_t>(spatial));
  const Tensor g = aten::contiguous(grad);
  const PoolIndices all("_max_pool_backward", p, indices);
  const int64_t size = p.in_size();
  p.for_each([&](int64_t begin, int64_t end) {
    std::vector<W> sums(static_cast<size_t>(size));
    for (int64_t n = begin; n < end; ++n) {
      std::fill(sums.begin(), sums.end(), W(0));
      const T* const from = g.data_as<T>() + n * p.out_size();
      all.of_plane(n, [&](int64_t i, int64_t o) {
        sums[static_cast<size_t>(i)] += static_cast<C>(from[o]);
      });
      std::transform(sums.begin(), sums.end(), out.data_as<T>() + n * size,
                     [](W sum) { return static_cast<T>(static_cast<C>(sum)); });
    }
  });
}

template <class T>
void max_pool_gather_cpu(const Tensor& grad, const Tensor& indices, int64_t spatial,
                         const Tensor& out) {
  if (out.numel() == 0) return;
  if (by_pixels(out)) return pixels::max_pool_gather<T>(grad, indices, out);
  const PoolPlanes p(grad.sizes(), indices.sizes(), static_cast<size_t>(spatial));
  const Tensor g = aten::contiguous(grad);
  const PoolIndices all("_max_pool_gather", p, indices);
  const T* const from = g.data_as<T>();
  T* const to = out.data_as<T>();
  p.for_each([&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const T* const large = from + n * p.in_size();
      T* const small = to + n * p.out_size();
      all.of_plane(n, [=](int64_t i, int64_t o) { small[o] = large[i]; });
    }
  });
}

template <class T>
void max_unpool_cpu(const Tensor& self, const Tensor& indices, IntList output_size,
                    const Tensor& out) {
  if (self.numel() == 0) return static_cast<void>(std::fill_n(out.data_as<T>(), out.numel(), T(0)));
  const PoolPlanes p(out.sizes(), self.sizes(), output_size.size());
  const Tensor from = aten::contiguous(self);
  const PoolIndices all("_max_unpool", p, indices);
  const T* const values = from.data_as<T>();
  T* const to = out.data_as<T>();
  p.for_each([&](int64_t begin, int64_t end) {
    std::fill(to + begin * p.in_size(), to + end * p.in_size(), T(0));
    for (int64_t n = begin; n < end; ++n) {
      const T* const small = values + n * p.out_size();
      T* const large = to + n * p.in_size();
      all.of_plane(n, [=](int64_t i, int64_t o) { large[i] = small[o]; });
    }
  });
}

template <class Op>
Registration register_max_pool() {
  return register_kernels<Op, DeviceType::CPU>([]<class T>() { return &max_pool_cpu<T>; },
                                               "max_pool_cpu");
}
template <class Op>
Registration register_adaptive() {
  return register_kernels<Op, DeviceType::CPU>([]<class T>() { return &adaptive_max_pool_cpu<T>; },
                                               "adaptive_max_pool_cpu");
}
namespace ops = aten::ops;
[[maybe_unused]] const Registration sliding_registered[] = {
    register_max_pool<ops::max_pool1d_with_indices>(),
    register_max_pool<ops::max_pool2d_with_indices>(),
    register_max_pool<ops::max_pool3d_with_indices>()};
[[maybe_unused]] const Registration adaptive_registered[] = {
    register_adaptive<ops::adaptive_max_pool1d>(), register_adaptive<ops::adaptive_max_pool2d>(),
    register_adaptive<ops::adaptive_max_pool3d>()};
const auto backward_registered = register_kernels<ops::_max_pool_backward, DeviceType::CPU>(
    []<class T>() { return &max_pool_backward_cpu<T>; }, "max_pool_backward_cpu");
const auto gather_registered = register_kernels<ops::_max_pool_gather, DeviceType::CPU>(
    []<class T>() { return &max_pool_gather_cpu<T>; }, "max_pool_gather_cpu");
const auto unpool_registered = register_kernels<ops::_max_unpool, DeviceType::CPU>(
    []<class T>() { return &max_unpool_cpu<T>; }, "max_unpool_cpu");

}  // namespace
}  // namespace treadle::cpu
