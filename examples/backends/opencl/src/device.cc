// Finding devices, making queues, building programs.
//
// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <algorithm>

namespace treadle_opencl {

namespace plugin = treadle::plugin;
using plugin::ErrorKind;

namespace {

std::string text_of(cl_device_id id, cl_device_info what) {
  size_t size = 0;
  if (clGetDeviceInfo(id, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string text(size, '\0');
  clGetDeviceInfo(id, what, size, text.data(), nullptr);
  text.resize(text.find('\0'));
  return text;
}
template <class T>
T number_of(cl_device_id id, cl_device_info what) {
  T value{};
  succeed(clGetDeviceInfo(id, what, sizeof value, &value, nullptr), "clGetDeviceInfo");
  return value;
}

// This thread's stream on each device.
thread_local std::vector<uint64_t> current_streams;

}  // namespace

void succeed(cl_int code, const char* call) {
  if (code == CL_SUCCESS) return;
  const bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
                      code == CL_OUT_OF_HOST_MEMORY || code == CL_INVALID_BUFFER_SIZE;
  plugin::fail(memory ? ErrorKind::OutOfMemory : ErrorKind::Runtime, "opencl: expected ", call,
               " to succeed, got error ", code);
}

cl_event mark(cl_command_queue queue) {
  cl_event marker = nullptr;
  succeed(clEnqueueMarkerWithWaitList(queue, 0, nullptr, &marker), "clEnqueueMarkerWithWaitList");
  clFlush(queue);
  return marker;
}
bool is_complete(cl_event event) {
  cl_int status = CL_COMPLETE;
  succeed(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr),
          "clGetEventInfo");
  return status <= CL_COMPLETE;  // negative: it failed
}

Device::Device(cl_platform_id platform, cl_device_id id) : id_(id) {
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                              reinterpret_cast<cl_context_properties>(platform), 0};
  cl_int code = CL_SUCCESS;
  context_ = clCreateContext(properties, 1, &id_, nullptr, nullptr, &code);
  succeed(code, "clCreateContext");
  name_ = text_of(id_, CL_DEVICE_NAME);
  memory_ = number_of<cl_ulong>(id_, CL_DEVICE_GLOBAL_MEM_SIZE);
  is_cpu_ = (number_of<cl_device_type>(id_, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
  units_ = number_of<cl_uint>(id_, CL_DEVICE_MAX_COMPUTE_UNITS);
  if (number_of<cl_device_fp_config>(id_, CL_DEVICE_SINGLE_FP_CONFIG) &
      CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT)
    options_ += " -cl-fp32-correctly-rounded-divide-sqrt";
  create_queue();  // stream 0
}

uint64_t Device::create_queue() {
  cl_int code = CL_SUCCESS;
  const cl_command_queue queue =
      clCreateCommandQueue(context_, id_, CL_QUEUE_PROFILING_ENABLE, &code);
  succeed(code, "clCreateCommandQueue");
  const std::lock_guard lock(queues_mutex_);
  queues_[next_queue_].handle = queue;
  return next_queue_++;
}
void Device::destroy_queue(uint64_t stream) {
  Queue queue;
  {
    const std::lock_guard lock(queues_mutex_);
    const auto found = queues_.find(stream);
    if (stream == 0 || found == queues_.end()) return;
    queue = found->second;
    queues_.erase(found);
  }
  clFinish(queue.handle);
  if (queue.marker != nullptr) clReleaseEvent(queue.marker);
  clReleaseCommandQueue(queue.handle);
}
Device::Queue& Device::queue_of(uint64_t stream) {
  const auto found = queues_.find(stream);
  plugin::check(found != queues_.end(), ErrorKind::Value,
                "opencl: expected the number of a stream, got ", stream);
  return found->second;
}
cl_command_queue Device::queue(uint64_t stream) {
  const std::lock_guard lock(queues_mutex_);
  Queue& queue = queue_of(stream);
  ++queue.used;
  return queue.handle;
}
void Device::finish(uint64_t stream) {
  cl_command_queue handle = nullptr;
  uint64_t used = 0;
  {
    const std::lock_guard lock(queues_mutex_);
    const Queue& queue = queue_of(stream);
    handle = queue.handle;
    used = queue.used;
  }
  succeed(clFinish(handle), "clFinish");
  const std::lock_guard lock(queues_mutex_);
  const auto found = queues_.find(stream);
  if (found != queues_.end()) found->second.done = std::max(found->second.done, used);
}
bool Device::is_idle(uint64_t stream) {
  const std::lock_guard lock(queues_mutex_);
  Queue& queue = queue_of(stream);
  if (queue.done == queue.used) return true;
  if (queue.marker == nullptr || queue.marked != queue.used) {
    if (queue.marker != nullptr) clReleaseEvent(queue.marker);
    queue.marker = nullptr;
    queue.marker = mark(queue.handle);
    queue.marked = queue.used;
  }
  if (!is_complete(queue.marker)) return false;
  queue.done = queue.marked;
  return true;
}
std::vector<uint64_t> Device::streams() {
  const std::lock_guard lock(queues_mutex_);
  std::vector<uint64_t> all;
  for (const auto& [number, queue] : queues_) all.push_back(number);
  return all;
}
cl_command_queue Device::current_queue() {
  return queue(position_ < current_streams.size() ? current_streams[position_] : 0);
}
void Device::set_current_stream(uint64_t stream) {
  {
    const std::lock_guard lock(queues_mutex_);
    queue_of(stream);  // there is one
  }
  if (current_streams.size() <= position_) current_streams.resize(position_ + 1, 0);
  current_streams[position_] = stream;
}

Device::Program Device::build(const char* name, const std::string& source) {
  cl_int code = CL_SUCCESS;
  const char* text = source.c_str();
  const cl_program handle = clCreateProgramWithSource(context_, 1, &text, nullptr, &code);
  succeed(code, "clCreateProgramWithSource");
  Program program{{handle, &clReleaseProgram}, {}, 0};
  if (clBuildProgram(handle, 1, &id_, options_.c_str(), nullptr, nullptr) != CL_SUCCESS) {
    size_t size = 0;
    clGetProgramBuildInfo(handle, id_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
    std::string log(size, '\0');
    clGetProgramBuildInfo(handle, id_, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
    plugin::fail(ErrorKind::Runtime, "opencl: expected the program of ", name, " to build, got\n",
                 log.substr(0, 600));
  }
  return program;
}
std::shared_ptr<Kernel> Device::Program::kernel(const char* name) {
  std::shared_ptr<Kernel>& kernel = kernels[name];
  if (!kernel) {
    cl_int code = CL_SUCCESS;
    const cl_kernel made = clCreateKernel(handle.get(), name, &code);
    succeed(code, "clCreateKernel");
    kernel = std::make_shared<Kernel>(made);
  }
  return kernel;
}
void Device::forget_old_programs() {
  constexpr size_t kMaxPrograms = 1024;
  if (programs_.size() < kMaxPrograms) return;
  // The half that was not used for longest.
  std::vector<uint64_t> uses;
  for (const auto& [key, program] : programs_) uses.push_back(program.last_used);
  std::nth_element(uses.begin(), uses.begin() + uses.size() / 2, uses.end());
  const uint64_t middle = uses[uses.size() / 2];
  for (auto at = programs_.begin(); at != programs_.end();)
    at = at->second.last_used < middle ? programs_.erase(at) : std::next(at);
}

cl_mem Device::fault() {
  const std::lock_guard lock(fault_mutex_);
  if (fault_ == nullptr) {
    Fault none{0, 0};
    cl_int code = CL_SUCCESS;
    fault_ = clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof none, &none,
                            &code);
    succeed(code, "clCreateBuffer");
  }
  return fault_;
}
Device::Fault Device::take_fault() {
  const cl_mem memory = fault();
  const std::lock_guard lock(fault_mutex_);
  Fault marked{0, 0};
  const Fault none{0, 0};
  const cl_command_queue queue = current_queue();
  succeed(
      clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, sizeof marked, &marked, 0, nullptr, nullptr),
      "clEnqueueReadBuffer");
  if (marked.mark != 0)
    succeed(
        clEnqueueWriteBuffer(queue, memory, CL_TRUE, 0, sizeof none, &none, 0, nullptr, nullptr),
        "clEnqueueWriteBuffer");
  return marked;
}

Devices& Devices::instance() {
  // Never destroyed: other threads may still run kernels while the process ends.
  static Devices* const devices = new Devices();
  return *devices;
}
Devices::Devices() {
  cl_uint platform_count = 0;
  // Without a platform the loader reports an error; both mean that there is no device.
  if (clGetPlatformIDs(0, nullptr, &platform_count) != CL_SUCCESS) return;
  std::vector<cl_platform_id> platforms(platform_count);
  clGetPlatformIDs(platform_count, platforms.data(), nullptr);
  for (const cl_platform_id platform : platforms) {
    cl_uint count = 0;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) continue;
    std::vector<cl_device_id> ids(count);
    clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr);
    for (const cl_device_id id : ids) {
      if (number_of<cl_device_fp_config>(id, CL_DEVICE_DOUBLE_FP_CONFIG) == 0) continue;
      if (!number_of<cl_bool>(id, CL_DEVICE_COMPILER_AVAILABLE)) continue;
      auto device = std::make_unique<Device>(platform, id);
      device->position_ = devices_.size();
      devices_.push_back(std::move(device));
    }
  }
}
Device& Devices::at(int32_t index) {
  plugin::check(index >= 0 && index < count(), ErrorKind::Runtime,
                "opencl: expected the index of a device below ", count(), ", got ", index,
                count() == 0 ? " (no OpenCL platform has a device with double precision)" : "");
  return *devices_[static_cast<size_t>(index)];
}

}  // namespace treadle_opencl
