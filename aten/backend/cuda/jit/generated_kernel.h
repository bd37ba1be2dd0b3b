// GeneratedKernel: a kernel that is compiled at run time. Each key has one kernel, shared by all
// devices of an architecture.
//
//   GeneratedKernel& kernel = GeneratedKernel::of(key, device, "pointwise", [&] { return text; });
//   kernel.launch(device, blocks, arguments);
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "aten/backend/cuda/calls.h"
#include "aten/backend/cuda/jit/geometry.h"

namespace treadle::cuda {

// The arguments of a launch, by value, in order. Added values are copied.
class Arguments {
 public:
  template <class T>
  Arguments& add(const T& value) {
    return add_bytes(&value, sizeof value, alignof(T));
  }
  Arguments& add_bytes(const void* data, size_t size, size_t alignment);
  // The addresses of the arguments, valid until one is added.
  void** pointers();

 private:
  static constexpr size_t kMax = 24, kMaxBytes = 4096;
  alignas(16) char bytes_[kMaxBytes];
  size_t used_ = 0, count_ = 0;
  void* pointers_[kMax];
};

// The key of a source: a few values of any kind.
using KernelKey = ByteList<320>;

class GeneratedKernel {
 public:
  // The kernel `name` of the source that `text` writes; `text` is only called for a new key.
  static GeneratedKernel& of(KernelKey key, int device, const char* name,
                             const std::function<std::string()>& text);

  // Launches in this thread's stream of the device, which must be current (DeviceGuard), with
  // blocks of 256 threads.
  void launch(int device, dim3 blocks, Arguments& arguments);

  static constexpr unsigned kThreads = 256;

 private:
  GeneratedKernel(std::string image, const char* name);
  void prepare(int device);

  std::string image_;  // the library refers to it
  cudaLibrary_t library_ = nullptr;
  cudaKernel_t kernel_ = nullptr;
  std::mutex mutex_;
  std::atomic<uint64_t> prepared_[2] = {};  // a bit for each device
};

}  // namespace treadle::cuda
