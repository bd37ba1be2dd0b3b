// Caches and launches generated kernels.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/jit/generated_kernel.h"

#include <cstring>
#include <memory>
#include <unordered_map>

#include "aten/backend/cuda/backend.h"
#include "aten/backend/cuda/faults.h"
#include "aten/backend/cuda/jit/compiler.h"
#include "aten/backend/cuda/outside_capture.h"
#include "core/base/error.h"

namespace treadle::cuda {

Arguments& Arguments::add_bytes(const void* data, size_t size, size_t alignment) {
  const size_t at = (used_ + alignment - 1) / alignment * alignment;
  check_internal(count_ < kMax && at + size <= kMaxBytes, "a launch's arguments have room");
  std::memcpy(bytes_ + at, data, size);
  pointers_[count_++] = bytes_ + at;
  used_ = at + size;
  return *this;
}
void** Arguments::pointers() { return pointers_; }

namespace {

// Keys are looked for without a string of their own.
struct Hash {
  using is_transparent = void;
  size_t operator()(std::string_view key) const { return std::hash<std::string_view>()(key); }
};

struct Known {
  std::mutex mutex;
  std::unordered_map<std::string, std::unique_ptr<GeneratedKernel>, Hash, std::equal_to<>> kernels;
};
Known& known() {
  static auto* known = new Known;
  return *known;
}

}  // namespace

GeneratedKernel& GeneratedKernel::of(KernelKey key, int device, const char* name,
                                     const std::function<std::string()>& text) {
  const int architecture = device_facts(device).architecture;
  key.add(architecture);
  Known& k = known();
  const std::lock_guard lock(k.mutex);
  const auto it = k.kernels.find(key.bytes());
  if (it != k.kernels.end()) return *it->second;
  std::unique_ptr<GeneratedKernel> made(new GeneratedKernel(compile(text(), architecture), name));
  return *k.kernels.emplace(key.bytes(), std::move(made)).first->second;
}

GeneratedKernel::GeneratedKernel(std::string image, const char* name) : image_(std::move(image)) {
  const OutsideCapture outside;
  succeed(
      calls().library_load_data(&library_, image_.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
      "loading a kernel");
  succeed(calls().library_get_kernel(&kernel_, library_, name), "finding a kernel");
}

// Tells the kernel where the device's error record is, if it can fail.
void GeneratedKernel::prepare(int device) {
  std::atomic<uint64_t>& done = prepared_[device / 64];
  const uint64_t bit = uint64_t{1} << (device % 64);
  if (done.load(std::memory_order_acquire) & bit) return;
  const std::lock_guard lock(mutex_);
  if (done.load(std::memory_order_relaxed) & bit) return;
  // The thread's own stream may be captured, and this is done once.
  const OutsideCapture outside;
  void* variable = nullptr;
  size_t size = 0;
  const cudaError_t code =
      calls().library_get_global(&variable, &size, library_, "_ZN7treadle11fault_placeE");
  if (code == cudaSuccess) {
    const FaultPlace place = faults().place(device);
    check_internal(size == sizeof place, "an error record's place has one layout");
    succeed(calls().memcpy_async(variable, &place, sizeof place, cudaMemcpyHostToDevice, nullptr),
            "preparing a kernel");
    succeed(calls().stream_synchronize(nullptr), "preparing a kernel");
  } else {
    calls().get_last_error();  // this kernel has none
  }
  done.fetch_or(bit, std::memory_order_release);
}

void GeneratedKernel::launch(int device, dim3 blocks, Arguments& arguments) {
  prepare(device);
  succeed(calls().launch_kernel(reinterpret_cast<const void*>(kernel_), blocks, dim3(kThreads),
                                arguments.pointers(), 0, stream_on(device)),
          "launching a kernel");
}

}  // namespace treadle::cuda
