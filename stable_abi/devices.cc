// Current devices and streams, of the accelerator and of CUDA.
//
// The accelerator is the kind of device beside the CPU: CUDA where it has a backend, else the first
// backend's. A stream's handle is a number that the backend knows; CUDA's is the cudaStream_t.
//
// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <mutex>

#include "core/base/fork_safe_mutex.h"
#include "core/device/backend.h"
#include "stable_abi/boundary.h"
#include "stable_abi/numbers.h"

namespace treadle::stable_abi {
namespace {

DeviceType accelerator() {
  if (backend_of(DeviceType::CUDA)) return DeviceType::CUDA;
  const std::vector<DeviceType> known = backends();
  check<ErrorKind::Runtime>(!known.empty(),
                            "expected a device beside the CPU, whose backend is loaded, got none");
  return known.front();
}

Device indexed(DeviceType type, int32_t index) { return with_index(numbered(type, index)); }

// Makes a device the current one, until it is deleted.
class CurrentDevice {
 public:
  CurrentDevice(DeviceType type, int32_t index) : type_(type), before_(current_device(type)) {
    set(index);
  }
  ~CurrentDevice() {
    try {
      set_current_device(type_, before_);
    } catch (...) {
      keep_error();
    }
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  void set(int32_t index) {
    if (index < 0) return;
    set_current_device(type_, indexed(type_, index).index);
  }

 private:
  DeviceType type_;
  int before_;
};

template <class Handle>
CurrentDevice& guard_of(Handle handle) {
  return *reinterpret_cast<CurrentDevice*>(given(handle, "a device guard"));
}

struct Stream {
  Device device;
  uint64_t number;
};
Stream& stream_of(StreamHandle handle) {
  return *reinterpret_cast<Stream*>(given(handle, "a stream"));
}

uint64_t number_of_stream(void* stream) { return reinterpret_cast<uint64_t>(stream); }
void* native(uint64_t stream) { return reinterpret_cast<void*>(stream); }

Backend& cuda() { return require_backend(with_index({DeviceType::CUDA, -1}).type); }

// Makes a device and a stream of it the current ones, until it is deleted.
struct CurrentStream {
  CurrentStream(void* stream, int32_t index)
      : device(DeviceType::CUDA, index),
        place(indexed(DeviceType::CUDA, index)),
        before(current_stream(place)) {
    set_current_stream(place, number_of_stream(stream));
  }
  ~CurrentStream() {
    try {
      set_current_stream(place, before);
    } catch (...) {
      keep_error();
    }
  }
  CurrentStream(const CurrentStream&) = delete;
  CurrentStream& operator=(const CurrentStream&) = delete;

  CurrentDevice device;
  Device place;
  uint64_t before;
};

// Memory of the device that an extension asked for, by its address.
struct RawMemory {
  ForkSafeMutex mutex;
  std::map<void*, Storage> all;
};
RawMemory& raw_memory() {
  static auto* const memory = new RawMemory;
  return *memory;
}

}  // namespace
}  // namespace treadle::stable_abi

using namespace treadle;              // NOLINT
using namespace treadle::stable_abi;  // NOLINT

AOTITorchError torch_parse_device_string(const char* text, uint32_t* device_type,
                                         int32_t* device_index) {
  return guarded([&] {
    const Device device = device_from_string(given(text, "a text"));
    *device_type = static_cast<uint32_t>(number_of(device.type));
    *device_index = device.index;
  });
}

// ---- the accelerator

AOTITorchError aoti_torch_create_device_guard(int32_t device_index, DeviceGuardHandle* result) {
  return guarded([&] {
    *result = reinterpret_cast<DeviceGuardHandle>(new CurrentDevice(accelerator(), device_index));
  });
}
AOTITorchError aoti_torch_delete_device_guard(DeviceGuardHandle guard) {
  return guarded([&] { delete reinterpret_cast<CurrentDevice*>(guard); });
}
AOTITorchError aoti_torch_device_guard_set_index(DeviceGuardHandle guard, int32_t device_index) {
  return guarded([&] { guard_of(guard).set(device_index); });
}
AOTITorchError aoti_torch_get_current_device_index(int32_t* result) {
  return guarded([&] { *result = current_device(accelerator()); });
}
AOTITorchError aoti_torch_get_current_stream(int32_t device_index, StreamHandle* result) {
  return guarded([&] {
    const Device device = indexed(accelerator(), device_index);
    *result = reinterpret_cast<StreamHandle>(new Stream{device, current_stream(device)});
  });
}
AOTITorchError aoti_torch_delete_stream(StreamHandle stream) {
  return guarded([&] { delete reinterpret_cast<Stream*>(stream); });
}
AOTITorchError aoti_torch_stream_id(StreamHandle stream, int64_t* result) {
  return guarded([&] { *result = static_cast<int64_t>(stream_of(stream).number); });
}
AOTITorchError torch_stream_native_handle(StreamHandle stream, void** result) {
  return guarded([&] { *result = native(stream_of(stream).number); });
}

// ---- CUDA

AOTITorchError aoti_torch_create_cuda_guard(int32_t device_index, CUDAGuardHandle* result) {
  return guarded([&] {
    cuda();
    *result = reinterpret_cast<CUDAGuardHandle>(new CurrentDevice(DeviceType::CUDA, device_index));
  });
}
AOTITorchError aoti_torch_delete_cuda_guard(CUDAGuardHandle guard) {
  return guarded([&] { delete reinterpret_cast<CurrentDevice*>(guard); });
}
AOTITorchError aoti_torch_cuda_guard_set_index(CUDAGuardHandle guard, int32_t device_index) {
  return guarded([&] { guard_of(guard).set(device_index); });
}
AOTITorchError aoti_torch_create_cuda_stream_guard(void* stream, int32_t device_index,
                                                   CUDAStreamGuardHandle* result) {
  return guarded([&] {
    cuda();
    *result = reinterpret_cast<CUDAStreamGuardHandle>(new CurrentStream(stream, device_index));
  });
}
AOTITorchError aoti_torch_delete_cuda_stream_guard(CUDAStreamGuardHandle guard) {
  return guarded([&] { delete reinterpret_cast<CurrentStream*>(guard); });
}
AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device_index, void** result) {
  return guarded(
      [&] { *result = native(current_stream(indexed(DeviceType::CUDA, device_index))); });
}
AOTITorchError torch_set_current_cuda_stream(void* stream, int32_t device_index) {
  return guarded([&] {
    set_current_stream(indexed(DeviceType::CUDA, device_index), number_of_stream(stream));
  });
}
// The stream is the program's from then on, as one of a pool is.
AOTITorchError torch_get_cuda_stream_from_pool(bool high_priority, int32_t device_index,
                                               void** result) {
  return guarded([&] {
    const Device device = indexed(DeviceType::CUDA, device_index);
    *result = native(cuda().create_stream(device.index, high_priority ? -1 : 0));
  });
}
AOTITorchError torch_cuda_stream_synchronize(void* stream, int32_t device_index) {
  return guarded([&] {
    const Device device = indexed(DeviceType::CUDA, device_index);
    cuda().synchronize_stream(device.index, number_of_stream(stream));
  });
}
AOTITorchError torch_get_current_cuda_blas_handle(void**) {
  return guarded([&] {
    fail<ErrorKind::NotImplemented>(
        "expected an extension that makes its own handle of cuBLAS, got one that asks for "
        "PyTorch's, by torch_get_current_cuda_blas_handle");
  });
}
AOTITorchError aoti_torch_cuda_caching_allocator_raw_alloc(uint64_t bytes, void** result) {
  return guarded([&] {
    const Device device = with_index({DeviceType::CUDA, -1});
    auto storage = make_intrusive<StorageImpl>(static_cast<size_t>(bytes), device);
    *result = storage->data();
    RawMemory& memory = raw_memory();
    const std::lock_guard lock(memory.mutex);
    memory.all[*result] = std::move(storage);
  });
}
AOTITorchError aoti_torch_cuda_caching_allocator_raw_delete(void* data) {
  return guarded([&] {
    RawMemory& memory = raw_memory();
    const std::lock_guard lock(memory.mutex);
    check<ErrorKind::Value>(memory.all.erase(data) == 1,
                            "expected an address that raw_alloc gave, got another one");
  });
}
