// Launch: a kernel with its arguments, put into this thread's queue.
//
//   Launch(device, device.kernel(key, "fill", source)).buffer(storage).scalar<int64_t>(offset)
//       .over(items);
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "device.h"

namespace treadle_opencl {

class Launch {
 public:
  Launch(Device& device, std::shared_ptr<Kernel> kernel)
      : device_(device), kernel_(std::move(kernel)) {}

  // A storage, as allocate() returned it.
  Launch& buffer(void* storage) {
    const auto memory = static_cast<cl_mem>(storage);
    return bytes(&memory, sizeof memory);
  }
  // The storage of a tensor and where its first element is, in bytes: two arguments. The tensor
  // lives until the kernel is in the queue: memory that is freed after that is not used again
  // before.
  Launch& tensor(const treadle::plugin::Tensor& t) {
    tensors_.push_back(t);
    buffer(t.storage());
    return scalar<int64_t>(t.storage_offset() *
                           static_cast<int64_t>(treadle::plugin::item_size(t.dtype())));
  }
  template <class T>
  Launch& scalar(T value) {
    return bytes(&value, sizeof value);
  }
  Launch& bytes(const void* data, size_t size) {
    const size_t start = data_.size();
    data_.resize(start + size);
    std::memcpy(data_.data() + start, data, size);
    sizes_.push_back(size);
    return *this;
  }

  // At least `items` work-items; kernels look whether they have work.
  void over(int64_t items) {
    if (items <= 0) return;
    // Groups of one on a CPU: what a group does is a loop there already.
    const size_t local = device_.is_cpu() ? 1 : 64;
    const size_t global = (static_cast<size_t>(items) + local - 1) / local * local;
    const std::lock_guard lock(kernel_->mutex());
    const char* at = data_.data();
    for (size_t i = 0; i < sizes_.size(); ++i) {
      succeed(clSetKernelArg(kernel_->handle(), static_cast<cl_uint>(i), sizes_[i], at),
              "clSetKernelArg");
      at += sizes_[i];
    }
    succeed(clEnqueueNDRangeKernel(device_.current_queue(), kernel_->handle(), 1, nullptr, &global,
                                   &local, 0, nullptr, nullptr),
            "clEnqueueNDRangeKernel");
  }
  // Items for `work` steps in all, of which each does `per`: as few as keep the device busy, and
  // none with less than `grain` on a CPU.
  static int64_t per_item(const Device& device, int64_t work, int64_t grain) {
    if (!device.is_cpu()) return 1;
    const int64_t share = (work + device.units() * 4 - 1) / (device.units() * 4);
    return share > grain ? share : grain;
  }

 private:
  Device& device_;
  std::shared_ptr<Kernel> kernel_;
  std::vector<treadle::plugin::Tensor> tensors_;
  std::vector<char> data_;
  std::vector<size_t> sizes_;
};

}  // namespace treadle_opencl
