// Counts of values, or sums of their weights: bincount, histc and the cells of histograms. Counts
// are integers, so any order of additions gives the same result. Weights are added in the elements'
// order.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/_histogramdd.h"
#include "aten/ops/amax.h"
#include "aten/ops/amin.h"
#include "aten/ops/bincount.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/histc.h"
#include "aten/ops/indexing/cuda/deterministic_scatter.cuh"
#include "aten/ops/statistics/histogram_bins.h"
#include "aten/ops/to.h"

namespace treadle::cuda {
namespace {

// Many additions to one counter would wait for each other, so with few counters each block counts
// first.
constexpr int64_t kPlacesOfBlock = 4096, kCountingBlocks = 1024;

template <class Places>
__global__ void count_in_blocks(Places place, int64_t n, int64_t span, unsigned long long* counts) {
  __shared__ unsigned mine[kPlacesOfBlock];
  for (int64_t at = threadIdx.x; at < span; at += kBlock) mine[at] = 0;
  __syncthreads();
  for_each_element(n, [=](int64_t i) {
    const int64_t at = place(i);
    if (at >= 0) atomicAdd(mine + at, 1u);
  });
  __syncthreads();
  for (int64_t at = threadIdx.x; at < span; at += kBlock)
    if (mine[at] > 0) atomicAdd(counts + at, static_cast<unsigned long long>(mine[at]));
}
template <class Places>
__global__ void count_kernel(Places place, int64_t n, unsigned long long* counts) {
  for_each_element(n, [=](int64_t i) {
    const int64_t at = place(i);
    if (at >= 0) atomicAdd(counts + at, 1ull);
  });
}
// The counts of values below `span`, int64.
template <class Places>
Tensor counted(Places places, int64_t n, int64_t span, const Place& place) {
  const Tensor counts = empty_tensor({span}, ScalarType::Int64, place.where);
  if (span == 0) return counts;
  auto* const at = static_cast<unsigned long long*>(counts.data());
  succeed(cudaMemsetAsync(at, 0, static_cast<size_t>(counts.nbytes()), place.stream),
          "filling memory");
  if (n == 0) return counts;
  if (span <= kPlacesOfBlock && n < int64_t{UINT32_MAX})
    count_in_blocks<<<std::min<unsigned>(blocks_for(n), kCountingBlocks), kBlock, 0,
                      place.stream>>>(places, n, span, at);
  else
    count_kernel<<<blocks_for(n), kBlock, 0, place.stream>>>(places, n, at);
  check_launched();
  return counts;
}

// The sum of weights, or of ones where they are null, in C.
template <class T, class C>
struct SumWeights {
  using Value = C;
  const T* weights;
  T* out;
  __device__ Value load(int64_t i, int64_t) const {
    return weights ? static_cast<C>(weights[i]) : C(1);
  }
  __device__ Value join(Value a, Value b) const { return a + b; }
  __device__ void store(int64_t at, int64_t, Value sum, int64_t) const {
    out[at] = static_cast<T>(sum);
  }
};
template <class T, class C, class Places>
void add_weights(const char* op, Places places, int64_t n, const T* weights, const Tensor& out,
                 const Place& place) {
  if (out.numel() == 0) return;
  succeed(cudaMemsetAsync(out.data(), 0, static_cast<size_t>(out.nbytes()), place.stream),
          "filling memory");
  scatter_fold(sorted_entries(op, places, n, out.numel(), place), out.numel(), 1,
               SumWeights<T, C>{weights, out.data_as<T>()}, place);
}

// ---- bincount ----

struct Values {
  const int64_t* values;
  __device__ int64_t operator()(int64_t i) const { return values[i]; }
};

template <class W>
Tensor weighted(const Tensor& values, const Tensor& weights, int64_t bins, const Place& place) {
  const Tensor out = empty_tensor({bins}, scalar_type_of<W>, place.where);
  add_weights<W, W>("bincount", Values{values.data_as<int64_t>()}, values.numel(),
                    weights.data_as<W>(), out, place);
  return out;
}

template <class T>
Tensor bincount_cuda(const Tensor& self, const Tensor& weights, int64_t minlength) {
  check_bincount(self, weights, minlength);
  const Place place(self);
  const Tensor values = aten::contiguous(aten::to(self, ScalarType::Int64));
  int64_t bins = minlength;
  if (values.numel() > 0) {
    bins_up_to(number_at<int64_t>(aten::amin(values), 0));
    bins = std::max(bins, bins_up_to(number_at<int64_t>(aten::amax(values), 0)));
  }
  if (!weights.defined())
    return counted(Values{values.data_as<int64_t>()}, values.numel(), bins, place);
  if (weights.dtype() == ScalarType::Float32)
    return weighted<float>(values, aten::contiguous(weights), bins, place);
  return weighted<double>(values, aten::contiguous(aten::to(weights, ScalarType::Float64)), bins,
                          place);
}

// ---- histc ----

template <class T>
struct BinsOf {
  const T* from;
  EqualBins bins;
  __device__ int64_t operator()(int64_t i) const { return bins.of(widened(from[i])); }
};
template <class T>
__global__ void as_elements(const int64_t* counts, int64_t n, T* out) {
  for_each_element(n, [=](int64_t i) {
    out[i] = narrowed<T>(static_cast<Computed<T>>(static_cast<double>(counts[i])));
  });
}

template <class T>
void histc_cuda(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max,
                const Tensor& out) {
  const Place place(out);
  const Tensor input = aten::contiguous(self);
  double low = min.to<double>(), high = max.to<double>();
  if (low == high && input.numel() > 0) {
    low = static_cast<Computed<T>>(number_at<T>(aten::amin(input), 0));
    high = static_cast<Computed<T>>(number_at<T>(aten::amax(input), 0));
  }
  const EqualBins equal(low, high, bins);
  const Tensor counts = counted(BinsOf<T>{input.data_as<T>(), equal}, input.numel(), bins, place);
  as_elements<<<blocks_for(bins), kBlock, 0, place.stream>>>(
      static_cast<const int64_t*>(counts.data_as<int64_t>()), bins, out.data_as<T>());
  check_launched();
}

// ---- histograms over several dimensions ----

constexpr int kMaxDims = 16;
// The cells between edges; the last along a dimension has both its edges.
template <class T>
struct Cells {
  const T* points;
  int dims;
  const T* edges[kMaxDims];
  int64_t sizes[kMaxDims];  // of the edges
  __device__ int64_t operator()(int64_t i) const {
    int64_t cell = 0;
    // Written out, as in Axes.
#pragma unroll
    for (int d = 0; d < kMaxDims; ++d) {
      if (d >= dims) break;
      const T v = points[i * dims + d];
      const T* const e = edges[d];
      const int64_t last = sizes[d] - 2;
      if (!(v >= e[0] && v <= e[last + 1])) return -1;
      // The first edge above v is behind its bin.
      int64_t low = 0, high = sizes[d];
      while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (v < e[middle])
          high = middle;
        else
          low = middle + 1;
      }
      cell = cell * (last + 1) + (low - 1 < last ? low - 1 : last);
    }
    return cell;
  }
};

template <class T>
void histogramdd_cuda(const Tensor& self, TensorList bins, const Tensor& weight,
                      const Tensor& out) {
  if (out.numel() == 0) return;
  const Place place(out);
  const Tensor points = aten::contiguous(self);
  const Tensor weights = weight.defined() ? aten::contiguous(weight) : Tensor();
  check<ErrorKind::Runtime>(self.size(1) <= kMaxDims, OpName("_histogramdd"), "expected at most ",
                            kMaxDims, " dimensions on cuda, got ", self.size(1));
  std::vector<Tensor> edges;
  Cells<T> cells{points.data_as<T>(), static_cast<int>(self.size(1)), {}, {}};
  for (size_t d = 0; d < bins.size(); ++d) {
    edges.push_back(aten::contiguous(bins[d]));
    const Tensor here = aten::to(edges.back(), kCPU, self.dtype());
    check_edges<T>(here.data_as<T>(), here.numel());
    cells.edges[d] = edges.back().template data_as<T>();
    cells.sizes[d] = edges.back().numel();
  }
  add_weights<T, double>("_histogramdd", cells, self.size(0),
                         weights.defined() ? weights.data_as<T>() : nullptr, out, place);
}

const auto bincount_registered = register_cuda<aten::ops::bincount>(
    DeclaredTypes<aten::ops::bincount>(), []<class T>() { return &bincount_cuda<T>; },
    "bincount_cuda");
const auto histc_registered = register_cuda<aten::ops::histc>(
    Floats(), []<class T>() { return &histc_cuda<T>; }, "histc_cuda");
const auto histogramdd_registered = register_cuda<aten::ops::_histogramdd>(
    TypeList<float, double>(), []<class T>() { return &histogramdd_cuda<T>; }, "histogramdd_cuda");

}  // namespace
}  // namespace treadle::cuda
