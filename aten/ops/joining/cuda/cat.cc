// cat and stack: contiguous runs of bytes, one after the other, by the device's copies of rows.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/registration.h"
#include "aten/ops/_cat.h"
#include "aten/ops/_stack.h"
#include "aten/ops/clone.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/joining/shape.h"

namespace treadle::cuda {
namespace {

// `outer`: the number of elements of `out` over the dimensions before the joined one.
void join(TensorList tensors, const Tensor& out, int64_t outer) {
  if (out.numel() == 0) return;
  const int device = out.device().index;
  const DeviceGuard guard(device);
  char* to = static_cast<char*>(out.data());
  const auto pitch = static_cast<size_t>(out.nbytes() / outer);
  for (const Tensor& t : tensors) {
    if (shape::cat_skips(t) || t.numel() == 0) continue;
    Tensor part = aten::contiguous(t);
    if (part.storage() == out.storage()) part = aten::clone(part, std::nullopt);
    const auto width = static_cast<size_t>(part.nbytes() / outer);
    succeed(cudaMemcpy2DAsync(to, pitch, part.data(), width, width, static_cast<size_t>(outer),
                              cudaMemcpyDeviceToDevice, stream_on(device)),
            "copying on a device");
    to += width;
  }
}

template <class T>
void cat_cuda(TensorList tensors, int64_t dim, IntList /*lengths*/, const Tensor& out) {
  join(tensors, out, dim_slices(out.sizes(), dim).outer);
}
template <class T>
void stack_cuda(TensorList tensors, int64_t dim, const Tensor& out) {
  join(tensors, out, dim_slices(out.sizes(), dim).outer);
}

const auto cat_registered = register_cuda<aten::ops::_cat>(
    AllTypes(), []<class T>() { return &cat_cuda<T>; }, "cat_cuda");
const auto stack_registered = register_cuda<aten::ops::_stack>(
    AllTypes(), []<class T>() { return &stack_cuda<T>; }, "stack_cuda");

}  // namespace
}  // namespace treadle::cuda
