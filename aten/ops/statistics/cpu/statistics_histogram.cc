// Histograms: the number of elements between neighbouring edges, or the sum of their weights.
//
// The last bin includes both its edges, the others only the lower one. Elements outside and NaN are
// not counted. Fixed pieces are counted, and added up in order.
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "aten/backend/cpu/dim_slices.h"
#include "aten/ops/_histogramdd.h"
#include "aten/ops/aminmax.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/histc.h"
#include "aten/ops/statistics/histogram_bins.h"

namespace treadle::cpu {
namespace {

// Adds up counts(begin, end, bins) of pieces of the elements; few pieces, as
// each has all bins.
template <class C, class F>
std::vector<C> counted(int64_t elements, int64_t bins, F&& counts) {
  constexpr int64_t kPieces = 16;
  const int64_t least = std::max<int64_t>(kGrain, bins);
  const int64_t most = std::max<int64_t>(least, (elements + kPieces - 1) / kPieces);
  const int64_t size = std::max<int64_t>(1, piece_length(elements, most));
  const int64_t pieces = std::max<int64_t>(1, (elements + size - 1) / size);
  std::vector<std::vector<C>> parts(pieces);
  parallel_chunks(pieces, [&](int64_t p) {
    parts[p].assign(bins, C(0));
    counts(p * size, std::min(elements, (p + 1) * size), parts[p].data());
  });
  for (int64_t p = 1; p < pieces; ++p) {
    for (int64_t b = 0; b < bins; ++b) parts[0][b] += parts[p][b];
  }
  return std::move(parts[0]);
}

// Adds the number of elements in each bin to `counts`. Several tables share the work: equal bins
// one after the other would wait for one another in one. Elements outside have a bin of their own.
template <class T>
void count_bins(const T* from, int64_t n, const EqualBins& equal, int64_t bins, int64_t* counts) {
  constexpr int64_t kTables = 4, kSmall = 2048, kBlock = 256;
  const int64_t mask = bins <= kSmall ? kTables - 1 : 0, pitch = bins + 1;
  std::vector<int64_t> tables(static_cast<size_t>((mask + 1) * pitch), 0);
  double places[kBlock];
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = std::min(kBlock, n - first);
    for (int64_t i = 0; i < count; ++i)  // a loop of vectors
      places[i] = equal.place(static_cast<double>(static_cast<compute_type<T>>(from[first + i])));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t bin = places[i] >= 0 ? equal.bin_at(places[i]) : bins;
      ++tables[static_cast<size_t>((i & mask) * pitch + bin)];
    }
  }
  for (int64_t t = 0; t <= mask; ++t) {
    for (int64_t b = 0; b < bins; ++b) counts[b] += tables[static_cast<size_t>(t * pitch + b)];
  }
}

template <class T>
void histc_cpu(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max,
               const Tensor& out) {
  const Tensor input = aten::contiguous(self);
  const T* const from = input.data_as<T>();
  const int64_t n = input.numel();
  double low = min.checked_to<double>("histc"), high = max.checked_to<double>("histc");
  if (low == high && n > 0) {
    const auto [least, greatest] = aten::aminmax(input);
    const auto number = [](const Tensor& t) {
      return static_cast<double>(static_cast<compute_type<T>>(*t.data_as<T>()));
    };
    low = number(least);
    high = number(greatest);
  }
  const EqualBins equal(low, high, bins);
  const auto counts = counted<int64_t>(n, bins, [&](int64_t begin, int64_t end, int64_t* count) {
    count_bins(from + begin, end - begin, equal, bins, count);
  });
  T* const to = out.data_as<T>();
  for (int64_t b = 0; b < bins; ++b)
    to[b] = static_cast<T>(static_cast<compute_type<T>>(static_cast<double>(counts[b])));
}

// The bins between given edges. Most edges are nearly equally far apart: then a product says which
// bin to look at first, and it or one beside it is the one.
template <class T>
class Edges {
 public:
  Edges(const T* edges, int64_t count)
      : edges_(edges, edges + count), last_(count - 2), low_(edges_[0]), high_(edges_.back()) {
    check_edges(edges, count);
    const T width = (high_ - low_) / static_cast<T>(bins());
    scale_ = T(1) / width;
    is_even_ = std::isfinite(width) && std::isfinite(scale_) &&
               static_cast<T>(bins()) * std::numeric_limits<T>::epsilon() < T(0.0625);
    for (int64_t i = 0; i < count && is_even_; ++i)
      is_even_ = std::abs(edges_[i] - low_ - width * static_cast<T>(i)) < width / 4;
  }
  int64_t bins() const { return last_ + 1; }
  bool contain(T v) const { return (v >= low_) & (v <= high_); }
  // The first or the last bin for what they do not contain.
  int64_t of(T value) const {
    const T above = value > low_ ? value : low_, v = above < high_ ? above : high_;
    if (is_even_) {  // without branches, which would often be mistaken
      int64_t bin = std::min(static_cast<int64_t>((v - low_) * scale_), last_);
      bin -= v < edges_[bin];
      return bin + ((bin < last_) & (v >= edges_[bin + 1]));
    }
    return std::min(std::upper_bound(edges_.begin(), edges_.end(), v) - edges_.begin() - 1, last_);
  }

 private:
  std::vector<T> edges_;
  int64_t last_;
  T low_, high_, scale_;
  bool is_even_;
};

template <class T>
void histogramdd_cpu(const Tensor& self, TensorList bins, const Tensor& weight, const Tensor& out) {
  const int64_t points = self.size(0), dims = self.size(1), cells = out.numel();
  if (cells == 0) return;
  const Tensor input = aten::contiguous(self);
  const Tensor weights = weight.defined() ? aten::contiguous(weight) : Tensor();
  std::vector<Edges<T>> edges;
  for (const Tensor& b : bins) {
    const Tensor own = aten::contiguous(b);
    edges.emplace_back(own.data_as<T>(), own.numel());
  }
  const T* const from = input.data_as<T>();
  const T* const factors = weights.defined() ? weights.data_as<T>() : nullptr;
  // Numbers outside the range are counted in a cell behind the others.
  // Several tables share the work, as in count_bins.
  constexpr int64_t kTables = 4, kSmall = 2048;
  const int64_t pitch = cells + 1, mask = pitch <= kSmall ? kTables - 1 : 0;
  const auto sums =
      counted<double>(points, pitch * (mask + 1), [&](int64_t begin, int64_t end, double* count) {
        for (int64_t i = begin; i < end; ++i) {
          int64_t cell = 0;
          bool inside = true;
          for (int64_t d = 0; d < dims; ++d) {
            const T v = from[i * dims + d];
            inside &= edges[d].contain(v);
            cell = cell * edges[d].bins() + edges[d].of(v);
          }
          const int64_t place = cells ^ ((cell ^ cells) & -static_cast<int64_t>(inside));
          count[(i & mask) * pitch + place] += factors ? static_cast<double>(factors[i]) : 1.0;
        }
      });
  T* const to = out.data_as<T>();
  for (int64_t c = 0; c < cells; ++c) {
    double sum = 0;
    for (int64_t t = 0; t <= mask; ++t) sum += sums[t * pitch + c];
    to[c] = static_cast<T>(sum);
  }
}

const auto histc_registered = register_kernels<aten::ops::histc, DeviceType::CPU>(
    []<class T>() { return &histc_cpu<T>; }, "histc_cpu");
const auto histogramdd_registered = register_kernels<aten::ops::_histogramdd, DeviceType::CPU>(
    []<class T>() { return &histogramdd_cpu<T>; }, "histogramdd_cpu");

}  // namespace
}  // namespace treadle::cpu
