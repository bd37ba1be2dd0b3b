// Devices: what OpenCL has on this machine, each with a context, its queues, and the kernels that
// were built for it. A device without double precision is left out: half of the dtypes need it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "treadle/plugin.hpp"

namespace treadle_opencl {

// A mark at the end of a queue, to be released.
cl_event mark(cl_command_queue queue);
bool is_complete(cl_event event);

// Throws RuntimeError (or out of memory) unless `code` is CL_SUCCESS; `call` names the function.
void succeed(cl_int code, const char* call);

// A kernel of a built program. Its arguments are part of it, so that setting them and enqueueing it
// is one step that one thread does at a time.
class Kernel {
 public:
  explicit Kernel(cl_kernel handle) : handle_(handle) {}
  Kernel(const Kernel&) = delete;
  ~Kernel() { clReleaseKernel(handle_); }
  cl_kernel handle() const { return handle_; }
  std::mutex& mutex() const { return mutex_; }

 private:
  cl_kernel handle_;
  mutable std::mutex mutex_;
};

class Device {
 public:
  Device(cl_platform_id platform, cl_device_id id);
  Device(const Device&) = delete;

  cl_context context() const { return context_; }
  const std::string& name() const { return name_; }
  size_t memory() const { return memory_; }
  // Whether a work-item is best given many elements (a CPU), or one.
  bool is_cpu() const { return is_cpu_; }
  int64_t units() const { return units_; }

  // The queue of a stream by number, for work to be put into, and the one that this thread's work
  // goes to.
  cl_command_queue queue(uint64_t stream);
  cl_command_queue current_queue();
  // Waits for what is in the queue; whether nothing is.
  void finish(uint64_t stream);
  bool is_idle(uint64_t stream);
  void set_current_stream(uint64_t stream);
  uint64_t create_queue();
  void destroy_queue(uint64_t stream);
  std::vector<uint64_t> streams();

  // The kernel `name` of the program with this text; built on first use. The text of a program is
  // asked for only then.
  template <class MakeSource>
  std::shared_ptr<Kernel> kernel(const std::string& key, const char* name, MakeSource make_source) {
    const std::lock_guard lock(programs_mutex_);
    auto found = programs_.find(key);
    if (found == programs_.end()) {
      forget_old_programs();
      found = programs_.emplace(key, build(name, make_source())).first;
    }
    found->second.last_used = ++uses_;
    return found->second.kernel(name);
  }

  // Where kernels mark what they cannot go on with, a division of an integer by zero or an index
  // out of range: a number other than 0, and the index.
  struct Fault {
    int64_t mark, value;
  };
  cl_mem fault();
  // Waits for the current queue and takes what was marked.
  Fault take_fault();

 private:
  // A built program with the kernels of it that are in use.
  struct Program {
    std::shared_ptr<std::remove_pointer_t<cl_program>> handle;
    std::map<std::string, std::shared_ptr<Kernel>> kernels;
    uint64_t last_used = 0;

    std::shared_ptr<Kernel> kernel(const char* name);
  };
  Program build(const char* name, const std::string& source);
  // Makes room where there are very many: a program takes a megabyte or more of the host's memory.
  void forget_old_programs();

  cl_device_id id_;
  cl_context context_ = nullptr;
  std::string name_, options_ = "-w";  // programs print nothing
  size_t memory_ = 0;
  bool is_cpu_ = false;
  int64_t units_ = 1;
  size_t position_ = 0;  // among all devices

  // A queue, how often work was put into it, up to which of these times it is known to be done, and
  // a marker behind one of them.
  struct Queue {
    cl_command_queue handle = nullptr;
    uint64_t used = 0, done = 0, marked = 0;
    cl_event marker = nullptr;
  };
  Queue& queue_of(uint64_t stream);  // with the lock held

  std::mutex queues_mutex_;
  std::map<uint64_t, Queue> queues_;
  uint64_t next_queue_ = 0;
  std::mutex programs_mutex_;
  std::map<std::string, Program> programs_;
  uint64_t uses_ = 0;
  std::mutex fault_mutex_;
  cl_mem fault_ = nullptr;

  friend class Devices;
};

class Devices {
 public:
  static Devices& instance();
  int32_t count() const { return static_cast<int32_t>(devices_.size()); }
  // RuntimeError where there is none of this index.
  Device& at(int32_t index);

 private:
  Devices();
  std::vector<std::unique_ptr<Device>> devices_;
};

// The device of a tensor.
inline Device& device_of(const treadle::plugin::Tensor& tensor) {
  return Devices::instance().at(tensor.device().index);
}

}  // namespace treadle_opencl
