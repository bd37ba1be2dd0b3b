// im2col: the windows of an image as columns; col2im: columns added up at the positions of their
// windows. Each is the other's gradient.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/im2col.h"

#include "aten/ops/col2im.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/convolution/cpu/conv_unfold.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

// The geometry of the windows over images of `sizes` ([N,] C, H, W).
ConvGeometry geometry(IntList sizes, IntList kernel, IntList dilation, IntList padding,
                      IntList stride) {
  ConvGeometry g{};
  g.batch = sizes.size() == 4 ? sizes[0] : 1;
  g.in_channels = sizes[sizes.size() - 3];
  g.groups = 1;
  g.spatial = 2;
  g.in = g.out = g.kernel = g.stride = g.dilation = {1, 1, 1};
  for (size_t d = 0; d < 2; ++d) {
    g.in[d + 1] = sizes[sizes.size() - 2 + d];
    g.kernel[d + 1] = kernel[d];
    g.stride[d + 1] = stride[d];
    g.padding[d + 1] = padding[d];
    g.dilation[d + 1] = dilation[d];
    g.out[d + 1] =
        (g.in[d + 1] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1;
  }
  return g;
}

// Calls f(first, end) in parallel, for channels among all images.
template <class F>
void for_channels(const ConvGeometry& g, F&& f) {
  const int64_t work = g.kernel_elements() * g.out_positions();
  parallel_for(g.batch * g.in_channels, std::max<int64_t>(1, 32768 / work), f);
}

template <class T>
void im2col_cpu(const Tensor& self, IntList kernel_size, IntList dilation, IntList padding,
                IntList stride, const Tensor& out) {
  if (out.numel() == 0) return;
  const ConvGeometry g = geometry(self.sizes(), kernel_size, dilation, padding, stride);
  const Tensor input = aten::contiguous(self);
  const int64_t positions = g.out_positions(), size = g.kernel_elements() * positions;
  for_channels(g, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      T* columns = out.data_as<T>() + c * size;
      std::fill_n(columns, size, T(0));
      unfolded::unfold(g, 1, input.data_as<T>() + c * g.in_positions(), 0, positions, columns);
    }
  });
}

template <class T>
void col2im_cpu(const Tensor& self, IntList, IntList kernel_size, IntList dilation, IntList padding,
                IntList stride, const Tensor& out) {
  using C = compute_type<T>;
  if (out.numel() == 0) return;
  const ConvGeometry g = geometry(out.sizes(), kernel_size, dilation, padding, stride);
  const Tensor input = aten::contiguous(self);
  const int64_t positions = g.out_positions(), size = g.kernel_elements() * positions;
  for_channels(g, [&](int64_t begin, int64_t end) {
    std::vector<C> image(static_cast<size_t>(g.in_positions()));
    C* const sums = image.data();
    for (int64_t c = begin; c < end; ++c) {
      const T* const columns = input.data_as<T>() + c * size;
      std::fill(image.begin(), image.end(), C(0));
      unfolded::for_runs(g, 1, 0, positions,
                         [=](int64_t from, int64_t to, int64_t n, int64_t step) {
                           for (int64_t i = 0; i < n; ++i)
                             sums[to + i * step] += static_cast<C>(columns[from + i]);
                         });
      std::copy(image.begin(), image.end(), out.data_as<T>() + c * g.in_positions());
    }
  });
}

const auto im2col_registered = register_kernels<aten::ops::im2col, DeviceType::CPU>(
    []<class T>() { return &im2col_cpu<T>; }, "im2col_cpu");
const auto col2im_registered = register_kernels<aten::ops::col2im, DeviceType::CPU>(
    []<class T>() { return &col2im_cpu<T>; }, "col2im_cpu");

}  // namespace
}  // namespace treadle::cpu
