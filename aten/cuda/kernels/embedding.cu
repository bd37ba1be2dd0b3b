// embedding and the gradient of its weight, index_select, gather. Entries are checked where they
// are used: one out of range is a fault, and nothing is read for it.
//
// The gradient of a weight's row is the sum of its uses' gradients in the order of the indices: the
// uses are sorted by row, stably, and the first of each row's adds them up.
#include <cub/device/device_radix_sort.cuh>

#include "aten/cuda/kernels/kernel.cuh"
#include "aten/ops/contiguous.h"
#include "aten/ops/embedding.h"
#include "aten/ops/embedding_dense_backward.h"
#include "aten/ops/gather.h"
#include "aten/ops/index_select.h"
#include "aten/ops/to.h"

namespace treadle::cuda {
namespace {

// ---- reading ----

// out[o][i][r] = data[o][index[i]][r]: rows of `width` units of memory.
template <class Unit, class Index>
__global__ void read_kernel(const Unit* data, const Index* index, Unit* out, int64_t outer,
                            int64_t entries, int64_t size, int64_t width, const char* op,
                            FaultPlace fault) {
  for_each_element(outer * entries * width, [=](int64_t i) {
    const int64_t r = i % width, row = i / width, e = row % entries, o = row / entries;
    const int64_t at = index[e];
    if (at < 0 || at >= size) {
      record_fault(fault, kIndexOutOfRange, op, 0, size, at);
      return;
    }
    out[i] = data[(o * size + at) * width + r];
  });
}

// Names of operators where kernels can read them.
__device__ const char kEmbedding[] = "embedding";
__device__ const char kEmbeddingBackward[] = "embedding_dense_backward";
__device__ const char kIndexSelect[] = "index_select";
__device__ const char kGather[] = "gather";
template <size_t n>
const char* on_device(const char (&name)[n]) {
  void* address = nullptr;
  succeed(cudaGetSymbolAddress(&address, name), "finding a name");
  return static_cast<const char*>(address);
}

// The entries side by side, as int32 or int64.
Tensor entries_of(const Tensor& index) {
  if (index.dtype() == ScalarType::Int32 || index.dtype() == ScalarType::Int64)
    return aten::contiguous(index);
  return aten::contiguous(aten::to(index, ScalarType::Int64));
}

template <class Index>
void read_rows(const void* data, const Tensor& index, const Tensor& out, int64_t outer,
               int64_t size, int64_t bytes, const char* op, const Place& place) {
  const int64_t entries = index.numel();
  const auto launch = [&]<class Unit>(Unit) {
    const int64_t width = bytes / static_cast<int64_t>(sizeof(Unit));
    read_kernel<Unit, Index><<<blocks_for(outer * entries * width), kBlock, 0, place.stream>>>(
        static_cast<const Unit*>(data), index.data_as<Index>(), static_cast<Unit*>(out.data()),
        outer, entries, size, width, op, faults().place(place.device));
    check_launched();
  };
  // The widest unit that rows and addresses are made of.
  const auto all = static_cast<uint64_t>(bytes) | reinterpret_cast<uintptr_t>(data) |
                   reinterpret_cast<uintptr_t>(out.data());
  if (all % 16 == 0)
    launch(uint4{});
  else if (all % 8 == 0)
    launch(uint64_t{});
  else if (all % 4 == 0)
    launch(uint32_t{});
  else if (all % 2 == 0)
    launch(uint16_t{});
  else
    launch(uint8_t{});
}

void read(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out, const char* op,
          const Place& place) {
  if (out.numel() == 0) return;
  const Tensor from = aten::contiguous(self), entries = entries_of(index);
  const auto at = static_cast<size_t>(dim);
  int64_t outer = 1, bytes = from.element_size();
  for (size_t d = 0; d < from.sizes().size(); ++d)
    (d < at ? outer : bytes) *= d == at ? 1 : from.sizes()[d];
  const int64_t size = from.sizes().empty() ? 1 : from.sizes()[at];
  if (entries.dtype() == ScalarType::Int32)
    read_rows<int32_t>(from.data(), entries, out, outer, size, bytes, op, place);
  else
    read_rows<int64_t>(from.data(), entries, out, outer, size, bytes, op, place);
}

template <class T>
void embedding_cuda(const Tensor& weight, const Tensor& indices, int64_t /*padding_idx*/,
                    bool /*scale_grad_by_freq*/, bool /*sparse*/, const Tensor& out) {
  const Place place(weight);
  read(weight, 0, indices, out, on_device(kEmbedding), place);
}
template <class T>
void index_select_cuda(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
  const Place place(self);
  read(self, wrap_dim("index_select", dim, self.dim()), index, out, on_device(kIndexSelect), place);
}

// ---- gather ----

constexpr int kMostDims = 16;
struct GatherGeometry {
  int dims, dim;
  int64_t sizes[kMostDims], strides[kMostDims];  // of the index; of self, in elements
};
template <class Unit, class Index>
__global__ void gather_kernel(const Unit* data, const Index* index, Unit* out, int64_t n,
                              int64_t size, GatherGeometry g, const char* op, FaultPlace fault) {
  for_each_element(n, [=](int64_t i) {
    const int64_t entry = index[i];
    if (entry < 0 || entry >= size) {
      record_fault(fault, kIndexOutOfRange, op, 0, size, entry);
      return;
    }
    int64_t rest = i, place = 0;
    for (int d = g.dims - 1; d >= 0; --d) {
      const int64_t at = rest % g.sizes[d];
      rest /= g.sizes[d];
      place += (d == g.dim ? entry : at) * g.strides[d];
    }
    out[i] = data[place];
  });
}

template <class T>
void gather_cuda(const Tensor& self, int64_t dim, const Tensor& index, bool /*sparse_grad*/,
                 const Tensor& out) {
  if (index.numel() == 0) return;
  check<ErrorKind::Runtime>(self.dim() <= kMostDims, "gather: expected at most ", kMostDims,
                            " dimensions on cuda, got ", self.dim());
  GatherGeometry g{
      static_cast<int>(self.dim()), static_cast<int>(wrap_dim("gather", dim, self.dim())), {}, {}};
  for (int d = 0; d < g.dims; ++d) {
    g.sizes[d] = index.sizes()[static_cast<size_t>(d)];
    g.strides[d] = self.strides()[static_cast<size_t>(d)];
  }
  const int64_t size = g.dims ? self.sizes()[static_cast<size_t>(g.dim)] : 1;
  const Tensor entries = entries_of(index);
  const Place place(self);
  const char* const op = on_device(kGather);
  const auto launch = [&]<class Index>(Index) {
    using Unit = std::conditional_t<
        sizeof(T) == 16, uint4,
        std::conditional_t<
            sizeof(T) == 8, uint64_t,
            std::conditional_t<sizeof(T) == 4, uint32_t,
                               std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>>;
    gather_kernel<<<blocks_for(index.numel()), kBlock, 0, place.stream>>>(
        static_cast<const Unit*>(self.data()), entries.data_as<Index>(),
        static_cast<Unit*>(out.data()), index.numel(), size, g, op, faults().place(place.device));
    check_launched();
  };
  if (entries.dtype() == ScalarType::Int32)
    launch(int32_t{});
  else
    launch(int64_t{});
}

// ---- the gradient of a weight ----

template <class Index>
__global__ void number_uses(const Index* index, int64_t n, int64_t rows, int64_t* keys,
                            int64_t* uses, const char* op, FaultPlace fault) {
  for_each_element(n, [=](int64_t i) {
    const int64_t row = index[i];
    const bool fits = row >= 0 && row < rows;
    if (!fits) record_fault(fault, kIndexOutOfRange, op, 0, rows, row);
    keys[i] = fits ? row : rows;  // behind all rows
    uses[i] = i;
  });
}
// A block for each use, of which the first of its row works; threads are columns.
template <class T>
__global__ void add_uses(const T* grad, const int64_t* keys, const int64_t* uses, int64_t n,
                         int64_t rows, int64_t width, int64_t padding, bool by_count, T* out) {
  using C = Computed<T>;
  const int64_t first = blockIdx.x, row = keys[first];
  if (row >= rows || row == padding || (first > 0 && keys[first - 1] == row)) return;
  int64_t last = first + 1;
  while (last < n && keys[last] == row) ++last;
  const C divisor = by_count ? static_cast<C>(last - first) : C(1);
  for (int64_t k = threadIdx.x; k < width; k += blockDim.x) {
    C sum = 0;
    for (int64_t u = first; u < last; ++u) sum += widened(grad[uses[u] * width + k]);
    out[row * width + k] = narrowed<T>(sum / divisor);
  }
}

template <class T>
void embedding_backward_cuda(const Tensor& grad_output, const Tensor& indices, int64_t num_weights,
                             int64_t padding_idx, bool scale_grad_by_freq, const Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor grad = aten::contiguous(grad_output), index = entries_of(indices);
  const int64_t n = index.numel(), width = out.sizes()[1];
  check<ErrorKind::Runtime>(n <= INT32_MAX,
                            "embedding_dense_backward: expected fewer than 2^31 indices on cuda, "
                            "got ",
                            n);
  const Place place(out);
  succeed(cudaMemsetAsync(out.data(), 0, static_cast<size_t>(out.nbytes()), place.stream),
          "filling memory");
  if (n == 0) return;
  const Tensor work = empty_tensor({4, n}, ScalarType::Int64, out.device());
  auto* const keys = work.data_as<int64_t>();
  int64_t *const uses = keys + n, *const sorted = keys + 2 * n, *const order = keys + 3 * n;
  const auto number = [&]<class Index>(Index) {
    number_uses<<<blocks_for(n), kBlock, 0, place.stream>>>(
        index.data_as<Index>(), n, num_weights, keys, uses, on_device(kEmbeddingBackward),
        faults().place(place.device));
    check_launched();
  };
  if (index.dtype() == ScalarType::Int32)
    number(int32_t{});
  else
    number(int64_t{});
  size_t bytes = 0;
  const auto sort = [&](void* scratch) {
    succeed(cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, sorted, uses, order,
                                            static_cast<int>(n), 0, 64, place.stream),
            "sorting");
  };
  sort(nullptr);
  const Tensor scratch =
      empty_tensor({static_cast<int64_t>(bytes)}, ScalarType::UInt8, out.device());
  sort(scratch.data());
  add_uses<T><<<static_cast<unsigned>(n), static_cast<unsigned>(std::min<int64_t>(width, kBlock)),
                0, place.stream>>>(grad.data_as<T>(), sorted, order, n, num_weights, width,
                                   padding_idx, scale_grad_by_freq, out.data_as<T>());
  check_launched();
}

const auto embedding_registered = register_cuda<aten::ops::embedding>(
    AllTypes(), []<class T>() { return &embedding_cuda<T>; }, "embedding_cuda");
const auto index_select_registered = register_cuda<aten::ops::index_select>(
    AllTypes(), []<class T>() { return &index_select_cuda<T>; }, "index_select_cuda");
const auto gather_registered = register_cuda<aten::ops::gather>(
    AllTypes(), []<class T>() { return &gather_cuda<T>; }, "gather_cuda");
const auto backward_registered = register_cuda<aten::ops::embedding_dense_backward>(
    Floats(), []<class T>() { return &embedding_backward_cuda<T>; }, "embedding_backward_cuda");

}  // namespace
}  // namespace treadle::cuda
