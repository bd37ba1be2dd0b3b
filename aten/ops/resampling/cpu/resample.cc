// Resampling along one dimension, by a table of the inputs whose sum each output is.
//
// Interpolation over several dimensions is one such step for each. The gradient is the same sum
// with the table of weights transposed.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "aten/backend/cpu/long_sums.h"
#include "aten/engine/strides/memory_format.h"
#include "aten/ops/_resample.h"
#include "aten/ops/_resample_backward.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/resampling/resample_taps.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

// A sparse matrix by rows: output o is the sum of weight[i] * in[index[i]] for i from start[o] to
// start[o + 1].
struct Taps {
  std::vector<int64_t> start{0}, index;
  std::vector<double> weight;

  void add(int64_t at, double w) {
    index.push_back(at);
    weight.push_back(w);
  }
  void end_row() { start.push_back(static_cast<int64_t>(index.size())); }
  int64_t rows() const { return static_cast<int64_t>(start.size()) - 1; }
  // Whether each output is one input.
  bool copies() const {
    for (int64_t o = 0; o < rows(); ++o) {
      if (start[o] != o || start[o + 1] != o + 1 || weight[o] != 1) return false;
    }
    return true;
  }

  // The rows with terms. The others are zero.
  std::vector<int64_t> used() const {
    std::vector<int64_t> found;
    for (int64_t o = 0; o < rows(); ++o) {
      if (start[o] < start[o + 1]) found.push_back(o);
    }
    return found;
  }

  Taps transposed(int64_t columns) const {
    Taps t;
    t.start.assign(static_cast<size_t>(columns) + 1, 0);
    t.index.resize(index.size());
    t.weight.resize(index.size());
    for (const int64_t at : index) ++t.start[at + 1];
    for (int64_t c = 0; c < columns; ++c) t.start[c + 1] += t.start[c];
    std::vector<int64_t> next(t.start.begin(), t.start.end() - 1);
    for (int64_t o = 0; o < rows(); ++o) {
      for (int64_t i = start[o]; i < start[o + 1]; ++i) {
        const int64_t to = next[index[i]]++;
        t.index[to] = o;
        t.weight[to] = weight[i];
      }
    }
    return t;
  }
};

Taps table_of(const ResampleTaps& of_output) {
  Taps taps;
  for (int64_t o = 0; o < of_output.out; ++o) {
    of_output.of(o, [&](int64_t at, double w) { taps.add(at, w); });
    taps.end_row();
  }
  return taps;
}

// The number of elements in the dimensions before and after `dim`.
std::pair<int64_t, int64_t> around(const Tensor& t, int64_t dim) {
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < dim; ++d) outer *= t.size(d);
  for (int64_t d = dim + 1; d < t.dim(); ++d) inner *= t.size(d);
  return {outer, inner};
}

// A step along dimension `dim`, whose input and output are contiguous: their dimensions are in the
// order in which they are in memory.
struct Step {
  Tensor in, out;
  int64_t dim;
  Step(const Tensor& self, int64_t d, const Tensor& result) {
    const MemoryFormat format = shape::format_of(result);
    in = aten::contiguous(self, format);
    out = result;
    dim = d;
    if (format == MemoryFormat::Contiguous) return;
    in = shape::channels_innermost(in);
    out = shape::channels_innermost(out);
    dim = shape::dim_with_channels_innermost(dim, self.dim());
  }
};

// Rows with more terms are summed up so that the error does not grow with their number.
constexpr int64_t kFewTaps = 8;

// Outputs that are sums of elements of `line`, which is the resampled dimension: those with the
// numbers o[0], ..., o[count - 1] in the line `to`.
template <class T, class C>
void elements_of(const Taps& taps, const C* weight, const int64_t* o, int64_t count, const T* line,
                 T* to) {
  const int64_t *const start = taps.start.data(), *const index = taps.index.data();
  for (int64_t k = 0; k < count; ++k) {
    const int64_t first = start[o[k]], last = start[o[k] + 1];
    const auto term = [&](int64_t i) { return weight[i] * static_cast<C>(line[index[i]]); };
    C sum = 0;
    if (last - first > kFewTaps) {
      sum = static_cast<C>(long_sum<C>(last - first, [&](int64_t i) { return term(first + i); }));
    } else {
      for (int64_t i = first; i < last; ++i) sum += term(i);
    }
    to[o[k]] = static_cast<T>(sum);
  }
}

// `inner` outputs side by side: the sum of a few rows of `plane`. `sums` has room for them.
template <class T, class C>
void row_of_few(const Taps& taps, const std::vector<C>& weight, int64_t o, const T* plane,
                int64_t inner, C* sums, T* to) {
  if constexpr (std::is_same_v<T, C>) sums = to;
  const int64_t first = taps.start[o], last = taps.start[o + 1];
  for (int64_t i = first; i < last; ++i) {
    const T* const row = plane + taps.index[i] * inner;
    const C w = weight[i];
    if (i == first) {
      for (int64_t x = 0; x < inner; ++x) sums[x] = w * static_cast<C>(row[x]);
    } else {
      for (int64_t x = 0; x < inner; ++x) sums[x] += w * static_cast<C>(row[x]);
    }
  }
  if constexpr (!std::is_same_v<T, C>)
    std::transform(sums, sums + inner, to, [](C sum) { return static_cast<T>(sum); });
}

// Each output a copy of an input.
template <class T>
void copy_elements(const Taps& taps, const T* from, int64_t in, int64_t inner, int64_t begin,
                   int64_t end, T* to) {
  const int64_t rows = taps.rows();
  for (int64_t r = begin; r < end; ++r) {
    const T* const plane = from + r / rows * in * inner;
    if (inner == 1) {
      const int64_t first = r % rows, count = std::min(rows - first, end - r);
      const int64_t* const index = taps.index.data() + first;
      for (int64_t i = 0; i < count; ++i) to[r + i] = plane[index[i]];
      r += count - 1;
    } else {
      std::copy_n(plane + taps.index[r % rows] * inner, inner, to + r * inner);
    }
  }
}

template <class T>
void apply(const Taps& taps, const Step& step) {
  using C = compute_type<T>;
  const std::pair<int64_t, int64_t> sides = around(step.in, step.dim);
  const int64_t outer = sides.first, inner = sides.second;
  const int64_t in = step.in.size(step.dim), rows = taps.rows();
  const T* const from = step.in.data_as<T>();
  T* const to = step.out.data_as<T>();
  const std::vector<C> weight(taps.weight.begin(), taps.weight.end());
  const bool copies = taps.copies();
  const std::vector<int64_t> used = taps.used();
  const bool zeros = static_cast<int64_t>(used.size()) < rows;
  // One element at a time if the dimension is the last, else whole rows of `inner` elements.
  const int64_t grain = std::max<int64_t>(1, 32768 / inner);
  parallel_for(outer * rows, grain, [&](int64_t begin, int64_t end) {
    if (copies) return copy_elements(taps, from, in, inner, begin, end, to);
    std::vector<C> few(static_cast<size_t>(std::is_same_v<T, C> ? 0 : inner));
    ColumnSums<C> sums(inner);
    if (zeros) std::fill(to + begin * inner, to + end * inner, T(0));
    // The outputs of one plane at a time.
    for (int64_t r = begin; r < end;) {
      const int64_t at_plane = r / rows, first = r % rows;
      const int64_t last = std::min(rows, first + end - r);
      const T* const plane = from + at_plane * in * inner;
      T* const to_plane = to + at_plane * rows * inner;
      const auto of = std::lower_bound(used.begin(), used.end(), first);
      const auto of_end = std::lower_bound(of, used.end(), last);
      r += last - first;
      if (inner == 1) {
        elements_of(taps, weight.data(), used.data() + (of - used.begin()), of_end - of, plane,
                    to_plane);
        continue;
      }
      for (auto o = of; o < of_end; ++o) {
        T* const to_row = to_plane + *o * inner;
        if (taps.start[*o + 1] - taps.start[*o] <= kFewTaps) {
          row_of_few(taps, weight, *o, plane, inner, few.data(), to_row);
          continue;
        }
        for (int64_t i = taps.start[*o]; i < taps.start[*o + 1]; ++i) {
          const T* row = plane + taps.index[i] * inner;
          const C w = weight[i];
          sums.add_row([&](C* s) {
            for (int64_t x = 0; x < inner; ++x) s[x] += w * static_cast<C>(row[x]);
          });
        }
        sums.take([to_row](int64_t x, wide_type<C> sum) {
          to_row[x] = static_cast<T>(static_cast<C>(sum));
        });
      }
    }
  });
}

// Weights of bytes as whole numbers of a power of two, as PyTorch and Pillow have them: as many
// bits as the largest of them leaves in 15.
struct WholeWeights {
  std::vector<int32_t> weight;
  int bits = 0;

  explicit WholeWeights(const std::vector<double>& exact) {
    const double most = exact.empty() ? 0 : *std::max_element(exact.begin(), exact.end());
    while (bits < 22 && std::floor(0.5 + most * (1 << (bits + 1))) < (1 << 15)) ++bits;
    for (const double w : exact)
      weight.push_back(static_cast<int32_t>(std::round(w * (1 << bits))));
  }
};

void apply_to_bytes(const Taps& taps, const Step& step) {
  const std::pair<int64_t, int64_t> sides = around(step.in, step.dim);
  const int64_t outer = sides.first, inner = sides.second;
  const int64_t in = step.in.size(step.dim), rows = taps.rows();
  const uint8_t* const from = step.in.data_as<uint8_t>();
  uint8_t* const to = step.out.data_as<uint8_t>();
  const WholeWeights whole(taps.weight);
  // A sum of bytes by weights that come to 2^22 at most fits.
  const int32_t half = whole.bits > 0 ? 1 << (whole.bits - 1) : 0;
  const auto byte_of = [bits = whole.bits](int32_t sum) {
    return static_cast<uint8_t>(std::clamp(sum >> bits, 0, 255));
  };
  const int64_t grain = std::max<int64_t>(1, 32768 / inner);
  parallel_for(outer * rows, grain, [&](int64_t begin, int64_t end) {
    std::vector<int32_t> sums(static_cast<size_t>(inner));
    for (int64_t r = begin; r < end; ++r) {
      const int64_t o = r % rows, first = taps.start[o], last = taps.start[o + 1];
      const uint8_t* plane = from + r / rows * in * inner;
      if (inner == 1) {
        int32_t sum = half;
        for (int64_t i = first; i < last; ++i) sum += whole.weight[i] * plane[taps.index[i]];
        to[r] = byte_of(sum);
        continue;
      }
      std::fill(sums.begin(), sums.end(), half);
      for (int64_t i = first; i < last; ++i) {
        const uint8_t* row = plane + taps.index[i] * inner;
        const int32_t w = whole.weight[i];
        for (int64_t x = 0; x < inner; ++x) sums[x] += w * row[x];
      }
      std::transform(sums.begin(), sums.end(), to + r * inner, byte_of);
    }
  });
}

template <class T>
void resample_cpu(const Tensor& self, int64_t dim, int64_t size, std::string_view mode,
                  bool align_corners, std::optional<double> scale, const Tensor& out) {
  if (out.numel() == 0) return;
  dim = wrap_dim("_resample", dim, self.dim());
  const Taps taps = table_of({mode, self.size(dim), size, align_corners, scale});
  if constexpr (std::is_same_v<T, uint8_t>)
    apply_to_bytes(taps, Step(self, dim, out));
  else
    apply<T>(taps, Step(self, dim, out));
}

template <class T>
void resample_backward_cpu(const Tensor& grad, int64_t dim, int64_t size, std::string_view mode,
                           bool align_corners, std::optional<double> scale, const Tensor& out) {
  if (out.numel() == 0) return;
  dim = wrap_dim("_resample_backward", dim, grad.dim());
  const Taps taps = table_of({mode, size, grad.size(dim), align_corners, scale});
  apply<T>(taps.transposed(size), Step(grad, dim, out));
}

const auto resample_registered = register_kernels<aten::ops::_resample, DeviceType::CPU>(
    []<class T>() { return &resample_cpu<T>; }, "resample_cpu");
const auto backward_registered = register_kernels<aten::ops::_resample_backward, DeviceType::CPU>(
    []<class T>() { return &resample_backward_cpu<T>; }, "resample_backward_cpu");

}  // namespace
}  // namespace treadle::cpu
