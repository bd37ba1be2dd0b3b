// Calls a plug-in's functions, and supplies defaults for missing ones.
//
// SPDX-License-Identifier: Apache-2.0
#include "plugin/host/plugin_backend.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <thread>
#include <utility>

#include "aten/engine/backends/generated.h"
#include "plugin/host/boundary.h"

namespace treadle::plugin {
namespace {

constexpr uint32_t kAllDtypes = (1u << kNumScalarTypes) - 1;
constexpr uint32_t dtype_bit(ScalarType t) { return 1u << static_cast<uint32_t>(t); }

// ValueError for a backend that has one of these functions and not another, which nothing can stand
// for: an event that can be made and not waited for, memory that is never freed.
void require_together(std::initializer_list<std::pair<const char*, bool>> functions) {
  const char* missing = nullptr;
  const char* there = nullptr;
  for (const auto& [name, given] : functions) (given ? there : missing) = name;
  check<ErrorKind::Value>(!missing || !there, "expected a backend with ", missing ? missing : "",
                          ", which goes with ", there ? there : "", ", got one without");
}

void require_whole_groups(const treadle_backend& b) {
  require_together({{"stream_create", b.stream_create},
                    {"stream_set", b.stream_set},
                    {"stream_query", b.stream_query}});
  require_together({{"event_create", b.event_create},
                    {"event_destroy", b.event_destroy},
                    {"event_record", b.event_record},
                    {"event_wait", b.event_wait},
                    {"event_query", b.event_query}});
  require_together(
      {{"pinned_allocate", b.pinned_allocate}, {"pinned_deallocate", b.pinned_deallocate}});
}

Backend::Facts facts_of(const treadle_backend& b, const std::string& plugin,
                        const std::string& plugin_version) {
  const char* missing = !b.name         ? "name"
                        : !b.allocate   ? "allocate"
                        : !b.deallocate ? "deallocate"
                        : !b.copy       ? "copy"
                                        : nullptr;
  check<ErrorKind::Value>(missing == nullptr,
                          "expected a backend with name, allocate, deallocate "
                          "and copy, got one without ",
                          missing ? missing : "");
  require_whole_groups(b);
  Backend::Facts f;
  f.name = b.name;
  f.storage_tag = b.storage_tag ? b.storage_tag : b.name;
  f.plugin = plugin;
  f.plugin_version = plugin_version;
  f.autocast_dtypes = b.autocast_dtypes
                          ? b.autocast_dtypes
                          : dtype_bit(ScalarType::Float16) | dtype_bit(ScalarType::BFloat16);
  f.autocast_dtype = b.autocast_dtypes ? dtype_from_c(b.autocast_dtype) : ScalarType::BFloat16;
  f.dtypes = b.dtypes ? b.dtypes : kAllDtypes;
  f.keeps_memory = b.flags & TREADLE_CACHE_MEMORY;
  f.host_visible = b.flags & TREADLE_HOST_VISIBLE;
  f.addressable = b.flags & TREADLE_ADDRESSABLE;
  f.generates = b.pointwise || b.reduce;
  return f;
}

treadle_place place_of(const MemoryPlace& p) { return {p.storage, p.offset, to_c(p.device)}; }

treadle_operand operand_of(const Tensor& t, const int64_t* strides, const char* name) {
  return {t.impl()->storage_data(), t.storage_offset() * t.element_size(), strides, to_c(t.dtype()),
          name};
}

class PluginBackend final : public Backend {
 public:
  PluginBackend(const treadle_backend& b, Facts facts) : Backend(std::move(facts)), b_(b) {}

  int device_count() override {
    if (!b_.device_count) return 1;
    int32_t count = 0;
    check_status(b_.device_count(b_.context, &count));
    check<ErrorKind::Runtime>(count >= 0 && count <= 127, OpName(facts().name),
                              "expected at most 127 devices, got ", count);
    return count;
  }
  void set_device(int index) override {
    if (b_.set_device) check_status(b_.set_device(b_.context, index));
  }

  void* allocate(int index, size_t nbytes) override {
    void* storage = nullptr;
    check_status(b_.allocate(b_.context, index, nbytes, &storage));
    check<ErrorKind::OutOfMemory>(storage != nullptr, "expected ", nbytes, " bytes of ",
                                  facts().name, ":", index, ", got none");
    return storage;
  }
  void deallocate(int index, void* storage, size_t nbytes) noexcept override {
    b_.deallocate(b_.context, index, storage, nbytes);
  }
  bool copy(MemoryPlace to, MemoryPlace from, size_t nbytes, bool non_blocking) override {
    const treadle_status status =
        b_.copy(b_.context, place_of(to), place_of(from), nbytes, non_blocking);
    if (status == TREADLE_DECLINED) return false;
    check_status(status);
    return true;
  }

  bool pointwise(const GeneratedPointwise& g) override;
  bool reduce(const GeneratedReduce& g) override;

  void synchronize(int index) override {
    if (b_.synchronize) check_status(b_.synchronize(b_.context, index));
  }

  uint64_t create_stream(int index, int priority) override {
    uint64_t stream = 0;
    if (b_.stream_create) check_status(b_.stream_create(b_.context, index, priority, &stream));
    return stream;
  }
  void destroy_stream(int index, uint64_t stream) noexcept override {
    if (b_.stream_destroy && stream) b_.stream_destroy(b_.context, index, stream);
  }
  void set_stream(int index, uint64_t stream) override {
    if (b_.stream_set) check_status(b_.stream_set(b_.context, index, stream));
  }
  bool stream_idle(int index, uint64_t stream) override {
    int32_t idle = 1;
    if (b_.stream_query) check_status(b_.stream_query(b_.context, index, stream, &idle));
    return idle != 0;
  }
  void synchronize_stream(int index, uint64_t stream) override {
    if (b_.stream_synchronize)
      check_status(b_.stream_synchronize(b_.context, index, stream));
    else
      synchronize(index);
  }

  void* create_event(int index, bool timing) override {
    void* event = nullptr;
    if (b_.event_create) check_status(b_.event_create(b_.context, index, timing, &event));
    return event;
  }
  void destroy_event(int index, void* event) noexcept override {
    if (b_.event_destroy && event) b_.event_destroy(b_.context, index, event);
  }
  void record_event(int index, void* event, uint64_t stream) override {
    if (b_.event_record) check_status(b_.event_record(b_.context, index, event, stream));
  }
  void wait_event(int index, void* event, uint64_t stream) override {
    if (b_.event_wait) check_status(b_.event_wait(b_.context, index, event, stream));
  }
  bool event_complete(void* event) override {
    int32_t complete = 1;
    if (b_.event_query) check_status(b_.event_query(b_.context, event, &complete));
    return complete != 0;
  }
  void synchronize_event(void* event) override {
    if (b_.event_synchronize) return check_status(b_.event_synchronize(b_.context, event));
    while (!event_complete(event)) std::this_thread::yield();
  }
  double elapsed_milliseconds(void* start, void* end) override {
    check<ErrorKind::NotImplemented>(b_.event_elapsed != nullptr,
                                     "expected a device whose events have times, got ",
                                     facts().name);
    double milliseconds = 0;
    check_status(b_.event_elapsed(b_.context, start, end, &milliseconds));
    return milliseconds;
  }

  void* allocate_pinned(size_t nbytes) override {
    void* data = nullptr;
    if (b_.pinned_allocate) check_status(b_.pinned_allocate(b_.context, nbytes, &data));
    return data;
  }
  void deallocate_pinned(void* data, size_t nbytes) noexcept override {
    if (b_.pinned_deallocate) b_.pinned_deallocate(b_.context, data, nbytes);
  }

  std::string device_name(int index) override {
    if (!b_.device_name) return facts().name;
    char text[256] = "";
    check_status(b_.device_name(b_.context, index, text, sizeof text));
    text[sizeof text - 1] = 0;
    return text;
  }
  Memory memory(int index) override {
    Memory m{0, 0};
    if (b_.memory_info) check_status(b_.memory_info(b_.context, index, &m.free, &m.total));
    return m;
  }

 private:
  treadle_backend b_;
};

bool PluginBackend::pointwise(const GeneratedPointwise& g) {
  if (!b_.pointwise) return false;
  treadle_operand inputs[kMaxGeneratedOperands];
  for (size_t k = 0; k < g.input_count; ++k)
    inputs[k] = operand_of(*g.inputs[k].tensor, g.inputs[k].strides, g.inputs[k].name);
  treadle_value numbers[kMaxGeneratedNumbers];
  const char* names[kMaxGeneratedNumbers];
  for (size_t k = 0; k < g.number_count; ++k) {
    numbers[k] = to_c(g.numbers[k].value);
    names[k] = g.numbers[k].name;
  }

  treadle_pointwise_call call{};
  call.size = sizeof call;
  call.dims = static_cast<int32_t>(g.shape.size());
  call.name = g.name;
  call.key = g.body;
  call.body = to_c(*g.body);
  call.device = to_c(g.device);
  call.compute = to_c(g.compute);
  call.input_count = static_cast<int32_t>(g.input_count);
  call.shape = g.shape.data();
  call.numel = g.numel;
  call.out = operand_of(*g.out.tensor, g.out.strides, g.out.name);
  call.inputs = inputs;
  call.number_names = names;
  call.numbers = numbers;
  call.number_count = static_cast<int32_t>(g.number_count);
  const treadle_status status = b_.pointwise(b_.context, &call);
  if (status == TREADLE_DECLINED) return false;
  check_status(status);
  return true;
}

bool PluginBackend::reduce(const GeneratedReduce& g) {
  if (!b_.reduce) return false;

  treadle_reduce_call call{};
  call.size = sizeof call;
  call.kept_dims = static_cast<int32_t>(g.call.kept_sizes.size());
  call.folded_dims = static_cast<int32_t>(g.call.reduced_sizes.size());
  call.compute = to_c(g.call.compute);
  call.name = g.name;
  call.key = g.parts;
  call.init = to_c(g.parts->init);
  call.step = to_c(g.parts->step);
  call.combine = to_c(g.parts->combine);
  call.final = to_c(g.parts->final);
  call.device = to_c(g.out.device());
  call.kept_shape = g.call.kept_sizes.data();
  call.folded_shape = g.call.reduced_sizes.data();
  call.in = operand_of(g.in, g.call.kept_in_strides.data(), "x");
  call.out = operand_of(g.out, g.call.kept_out_strides.data(), "out");
  call.folded_strides = g.call.reduced_in_strides.data();
  call.outputs = g.call.outputs;
  call.folded = g.call.reduced;
  const treadle_status status = b_.reduce(b_.context, &call);
  if (status == TREADLE_DECLINED) return false;
  check_status(status);
  return true;
}

}  // namespace

std::unique_ptr<Backend> make_backend(const treadle_backend& given, const std::string& plugin,
                                      const std::string& plugin_version) {
  treadle_backend b{};
  std::memcpy(&b, &given, std::min<size_t>(given.size, sizeof b));
  return std::make_unique<PluginBackend>(b, facts_of(b, plugin, plugin_version));
}

}  // namespace treadle::plugin
