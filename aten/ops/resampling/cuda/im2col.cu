// im2col: the windows of an image as columns. col2im: columns added up at the positions of their
// windows, with a thread for each element of the image, over the elements of the kernel in their
// order.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/col2im.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/im2col.h"

namespace treadle::cuda {
namespace {

// Windows over images of (height, width); down first, across second.
struct Windows {
  int64_t in[2], out[2], kernel[2], dilation[2], padding[2], stride[2];

  Windows(IntList sizes, IntList kernel_size, IntList dilations, IntList paddings,
          IntList strides) {
    for (size_t d = 0; d < 2; ++d) {
      in[d] = sizes[sizes.size() - 2 + d];
      kernel[d] = kernel_size[d];
      dilation[d] = dilations[d];
      padding[d] = paddings[d];
      stride[d] = strides[d];
      out[d] = (in[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1;
    }
  }
  // The image position under element k of the kernel at window position p, along one dimension.
  __device__ int64_t met(int d, int64_t k, int64_t p) const {
    return p * stride[d] - padding[d] + k * dilation[d];
  }
  // The window position at which it covers an image position; -1 if there is none.
  __device__ int64_t position(int d, int64_t k, int64_t place) const {
    const int64_t from = place + padding[d] - k * dilation[d];
    return from >= 0 && from % stride[d] == 0 && from / stride[d] < out[d] ? from / stride[d] : -1;
  }
};

template <class Unit>
__global__ void im2col_kernel(Windows w, const Unit* image, Unit* columns, int64_t n) {
  for_each_element(n, [=](int64_t i) {
    int64_t rest = i;
    const auto next = [&](int64_t size) {
      const int64_t at = rest % size;
      rest /= size;
      return at;
    };
    const int64_t px = next(w.out[1]), py = next(w.out[0]);
    const int64_t kx = next(w.kernel[1]), ky = next(w.kernel[0]);
    const int64_t x = w.met(1, kx, px), y = w.met(0, ky, py);
    const bool inside = x >= 0 && x < w.in[1] && y >= 0 && y < w.in[0];
    columns[i] = inside ? image[(rest * w.in[0] + y) * w.in[1] + x] : Unit{};
  });
}

template <class S>
__global__ void col2im_kernel(Windows w, const S* columns, S* image, int64_t n) {
  for_each_element(n, [=](int64_t i) {
    const int64_t x = i % w.in[1], y = i / w.in[1] % w.in[0], channel = i / w.in[1] / w.in[0];
    Computed<S> sum{};
    for (int64_t ky = 0; ky < w.kernel[0]; ++ky) {
      const int64_t py = w.position(0, ky, y);
      if (py < 0) continue;
      for (int64_t kx = 0; kx < w.kernel[1]; ++kx) {
        const int64_t px = w.position(1, kx, x);
        if (px < 0) continue;
        const int64_t row = (channel * w.kernel[0] + ky) * w.kernel[1] + kx;
        sum = sum + widened(columns[(row * w.out[0] + py) * w.out[1] + px]);
      }
    }
    image[i] = narrowed<S>(sum);
  });
}

template <class T>
void im2col_cuda(const Tensor& self, IntList kernel_size, IntList dilation, IntList padding,
                 IntList stride, const Tensor& out) {
  if (out.numel() == 0) return;
  const Windows w(self.sizes(), kernel_size, dilation, padding, stride);
  const Tensor image = aten::contiguous(self);
  const Place place(out);
  im2col_kernel<<<blocks_for(out.numel()), kBlock, 0, place.stream>>>(
      w, static_cast<const Bits<T>*>(image.data()), static_cast<Bits<T>*>(out.data()), out.numel());
  check_launched();
}

template <class T>
void col2im_cuda(const Tensor& self, IntList /*output_size*/, IntList kernel_size, IntList dilation,
                 IntList padding, IntList stride, const Tensor& out) {
  if (out.numel() == 0) return;
  const Windows w(out.sizes(), kernel_size, dilation, padding, stride);
  const Tensor columns = aten::contiguous(self);
  const Place place(out);
  col2im_kernel<<<blocks_for(out.numel()), kBlock, 0, place.stream>>>(
      w, static_cast<const Stored<T>*>(columns.data()), static_cast<Stored<T>*>(out.data()),
      out.numel());
  check_launched();
}

const auto im2col_registered = register_cuda<aten::ops::im2col>(
    DeclaredTypes<aten::ops::im2col>(), []<class T>() { return &im2col_cuda<T>; }, "im2col_cuda");
const auto col2im_registered = register_cuda<aten::ops::col2im>(
    DeclaredTypes<aten::ops::col2im>(), []<class T>() { return &col2im_cuda<T>; }, "col2im_cuda");

}  // namespace
}  // namespace treadle::cuda
