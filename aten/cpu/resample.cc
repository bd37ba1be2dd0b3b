// Resampling along one dimension: each output is a weighted sum of a few inputs.
//
//   linear, 4 -> 8, align_corners = False:  out[3] = 0.75 * in[1] + 0.25 * in[2]
//
// Interpolation over several dimensions is one such step for each. The gradient is the same sum
// with the table of weights transposed. Source positions and weights are computed in double, the
// nearest positions without a given scale in whole numbers.
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "aten/ops/_resample.h"
#include "aten/ops/_resample_backward.h"
#include "aten/ops/contiguous.h"
#include "core/parallel.h"

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

struct Lengths {
  int64_t in, out;
  bool align_corners;
  std::optional<double> scale;  // out per in, as given

  // Input positions for each output position.
  double step() const {
    if (align_corners)
      return out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0.0;
    return scale ? 1.0 / *scale : static_cast<double>(in) / static_cast<double>(out);
  }
  double source(int64_t o) const {
    return align_corners ? step() * static_cast<double>(o)
                         : step() * (static_cast<double>(o) + 0.5) - 0.5;
  }
  int64_t clamped(double position) const {
    return static_cast<int64_t>(std::clamp(position, 0.0, static_cast<double>(in - 1)));
  }
};

Taps nearest(const Lengths& n, bool exact) {
  Taps taps;
  for (int64_t o = 0; o < n.out; ++o) {
    int64_t at;
    if (n.scale) {
      at = n.clamped(std::floor((static_cast<double>(o) + (exact ? 0.5 : 0.0)) / *n.scale));
    } else {
      const __int128 twice =
          exact ? static_cast<__int128>(2) * o + 1 : static_cast<__int128>(2) * o;
      at = static_cast<int64_t>(twice * n.in / (static_cast<__int128>(2) * n.out));
    }
    taps.add(std::min(at, n.in - 1), 1.0);
    taps.end_row();
  }
  return taps;
}

Taps linear(const Lengths& n) {
  Taps taps;
  for (int64_t o = 0; o < n.out; ++o) {
    const double at = std::max(0.0, n.source(o));
    const int64_t left = n.clamped(std::floor(at)), right = std::min(left + 1, n.in - 1);
    const double t = std::min(1.0, at - static_cast<double>(left));
    if (right == left || t == 0.0) {
      taps.add(left, 1.0);
    } else {
      taps.add(left, 1.0 - t);
      taps.add(right, t);
    }
    taps.end_row();
  }
  return taps;
}

// Keys' cubic kernel with parameter `a`.
double cubic_weight(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((x - 5) * x + 8) * x * a - 4 * a;
  return 0;
}

Taps cubic(const Lengths& n) {
  Taps taps;
  for (int64_t o = 0; o < n.out; ++o) {
    const double at = n.source(o), left = std::floor(at), t = at - left;
    for (int k = -1; k <= 2; ++k)
      taps.add(n.clamped(left + k), cubic_weight(t - static_cast<double>(k), -0.75));
    taps.end_row();
  }
  return taps;
}

// The kernel is widened to the distance between outputs, so that all inputs count where there are
// fewer outputs. Weights add up to one.
Taps antialiased(const Lengths& n, double half_width, double (*kernel)(double)) {
  Taps taps;
  const double step = n.step(), widening = std::max(1.0, step), support = half_width * widening;
  for (int64_t o = 0; o < n.out; ++o) {
    const double centre = step * (static_cast<double>(o) + 0.5);
    const double size = static_cast<double>(n.in);
    const auto first = static_cast<int64_t>(std::clamp(centre - support + 0.5, 0.0, size - 1));
    const auto last = static_cast<int64_t>(std::clamp(centre + support + 0.5, 0.0, size));
    double total = 0;
    for (int64_t i = first; i < last; ++i)
      total += kernel((static_cast<double>(i) - centre + 0.5) / widening);
    if (total == 0) {
      taps.add(n.clamped(centre), 1.0);
    } else {
      for (int64_t i = first; i < last; ++i)
        taps.add(i, kernel((static_cast<double>(i) - centre + 0.5) / widening) / total);
    }
    taps.end_row();
  }
  return taps;
}

Taps taps_for(std::string_view mode, const Lengths& n) {
  if (mode == "nearest") return nearest(n, false);
  if (mode == "nearest-exact") return nearest(n, true);
  if (mode == "linear") return linear(n);
  if (mode == "cubic") return cubic(n);
  if (mode == "linear-antialias")
    return antialiased(n, 1.0, [](double x) { return std::max(0.0, 1.0 - std::abs(x)); });
  return antialiased(n, 2.0, [](double x) { return cubic_weight(x, -0.5); });
}

template <class T>
void apply(const Taps& taps, const Tensor& self, int64_t dim, const Tensor& out) {
  using C = compute_type<T>;
  const Tensor input = aten::contiguous(self);
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < dim; ++d) outer *= input.size(d);
  for (int64_t d = dim + 1; d < input.dim(); ++d) inner *= input.size(d);
  const int64_t in = input.size(dim), rows = taps.rows();
  const T* const from = input.data_as<T>();
  T* const to = out.data_as<T>();
  const std::vector<C> weight(taps.weight.begin(), taps.weight.end());
  // One element at a time where the dimension is the last, else whole rows of `inner` elements.
  const int64_t grain = std::max<int64_t>(1, 32768 / inner);
  parallel_for(outer * rows, grain, [&](int64_t begin, int64_t end) {
    std::vector<C> sums(static_cast<size_t>(inner));
    for (int64_t r = begin; r < end; ++r) {
      const int64_t o = r % rows;
      const T* plane = from + r / rows * in * inner;
      if (inner == 1) {
        C sum = 0;
        for (int64_t i = taps.start[o]; i < taps.start[o + 1]; ++i)
          sum += weight[i] * static_cast<C>(plane[taps.index[i]]);
        to[r] = static_cast<T>(sum);
        continue;
      }
      std::fill(sums.begin(), sums.end(), C(0));
      for (int64_t i = taps.start[o]; i < taps.start[o + 1]; ++i) {
        const T* row = plane + taps.index[i] * inner;
        const C w = weight[i];
        C* const s = sums.data();
        for (int64_t x = 0; x < inner; ++x) s[x] += w * static_cast<C>(row[x]);
      }
      for (int64_t x = 0; x < inner; ++x) to[r * inner + x] = static_cast<T>(sums[x]);
    }
  });
}

template <class T>
void resample_cpu(const Tensor& self, int64_t dim, int64_t size, std::string_view mode,
                  bool align_corners, std::optional<double> scale, const Tensor& out) {
  if (out.numel() == 0) return;
  dim = wrap_dim("_resample", dim, self.dim());
  apply<T>(taps_for(mode, {self.size(dim), size, align_corners, scale}), self, dim, out);
}

template <class T>
void resample_backward_cpu(const Tensor& grad, int64_t dim, int64_t size, std::string_view mode,
                           bool align_corners, std::optional<double> scale, const Tensor& out) {
  if (out.numel() == 0) return;
  dim = wrap_dim("_resample_backward", dim, grad.dim());
  const Taps taps = taps_for(mode, {size, grad.size(dim), align_corners, scale});
  apply<T>(taps.transposed(size), grad, dim, out);
}

const auto resample_registered = register_kernels<aten::ops::_resample, DeviceType::CPU>(
    []<class T>() { return &resample_cpu<T>; }, "resample_cpu");
const auto backward_registered = register_kernels<aten::ops::_resample_backward, DeviceType::CPU>(
    []<class T>() { return &resample_backward_cpu<T>; }, "resample_backward_cpu");

}  // namespace
}  // namespace treadle::cpu
