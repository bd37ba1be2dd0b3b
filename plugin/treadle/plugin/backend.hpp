// Backend: a kind of device as a class. A backend offers the functions that its class overrides.
// Treadle supplies the others.
//
//   class Minimal final : public Backend {
//    public:
//     void* allocate(int32_t, size_t nbytes) override { return std::malloc(nbytes); }
//     ...
//   };
//   const treadle_device_type device = register_backend<Minimal>({"minimal"});
#pragma once

#include "treadle/plugin/kernel.hpp"

#pragma GCC visibility push(hidden)

namespace treadle::plugin {

struct Memory {
  size_t free = 0, total = 0;
};

// The text of the error for a missing function of a backend.
struct BackendDescription {
  const char* name = nullptr;  // lower-case letters, digits and '_': treadle.device("name:0")
  bool cache_memory = false;   // freed memory is kept for later allocations of about its size
  bool host_visible = false;   // storages are addresses that the CPU may read and write
  bool addressable = false;    // storages are addresses, and those within them are as good
  const char* storage_tag = nullptr;    // the name under which storages are saved; null: `name`
  DType autocast_dtype = DType::Bool;   // what autocast casts to unless told; Bool: bfloat16
  Span<const DType> autocast_dtypes{};  // those it may cast to; none: float16 and bfloat16
  Span<const DType> dtypes{};           // what its tensors may have; none: all
};

// Derive from it, override, and give the class to register_backend(). Its functions may be called
// from any thread. Their exceptions become Python exceptions. Overriding functions must be public.
class Backend {
 public:
  virtual ~Backend() = default;

  // Devices.
  virtual int32_t device_count() { return 1; }
  virtual void set_device(int32_t index) { (void)index; }  // this thread's current device changed

  // Memory. A storage is an address or any other nonzero handle; nbytes > 0.
  virtual void* allocate(int32_t index, size_t nbytes) = 0;
  virtual void deallocate(int32_t index, void* storage, size_t nbytes) = 0;
  // Copies between a device and the CPU, or within the backend. False declines a copy between two
  // devices. When it returns, CPU memory may be reused; with non_blocking, after synchronize().
  virtual bool copy(treadle_place to, treadle_place from, size_t nbytes, bool non_blocking) = 0;

  // Generated kernels; false leaves the call to Treadle.
  virtual bool pointwise(const treadle_pointwise_call& call) { return ((void)call, false); }
  virtual bool reduce(const treadle_reduce_call& call) { return ((void)call, false); }

  // Waits for all work of a device.
  virtual void synchronize(int32_t index) { (void)index; }

  // Streams: queues of work; 0 is the default one. Override stream_create, stream_set and
  // stream_query together. Without stream_synchronize, Treadle waits for the whole device.
  virtual uint64_t stream_create(int32_t index, int32_t priority) {
    return ((void)index, (void)priority, 0);
  }
  virtual void stream_destroy(int32_t index, uint64_t stream) { (void)index, (void)stream; }
  virtual void stream_set(int32_t index, uint64_t stream) { (void)index, (void)stream; }
  virtual bool stream_query(int32_t index, uint64_t stream) {  // whether it is idle
    return ((void)index, (void)stream, true);
  }
  virtual void stream_synchronize(int32_t index, uint64_t stream) { (void)index, (void)stream; }

  // Events: marks in a stream. Override all but the last two together. Without event_synchronize,
  // Treadle polls the event until it is complete.
  virtual void* event_create(int32_t index, bool timing) {
    return ((void)index, (void)timing, nullptr);
  }
  virtual void event_destroy(int32_t index, void* event) { (void)index, (void)event; }
  virtual void event_record(int32_t index, void* event, uint64_t stream) {
    (void)index, (void)event, (void)stream;
  }
  virtual void event_wait(int32_t index, void* event, uint64_t stream) {
    (void)index, (void)event, (void)stream;
  }
  virtual bool event_query(void* event) { return ((void)event, true); }  // whether it is complete
  virtual void event_synchronize(void* event) { (void)event; }
  virtual double event_elapsed(void* start, void* end) {  // milliseconds
    return ((void)start, (void)end, 0);
  }

  // CPU memory with fast copies. Override both or none.
  virtual void* pinned_allocate(size_t nbytes) { return ((void)nbytes, nullptr); }
  virtual void pinned_deallocate(void* data, size_t nbytes) { (void)data, (void)nbytes; }

  // For people.
  virtual std::string device_name(int32_t index) { return ((void)index, std::string()); }
  virtual Memory memory_info(int32_t index) { return ((void)index, Memory{}); }
};

namespace detail {

// Whether a class overrides a member. Then the pointer to it points to a member of that class (or
// of one between).
template <class Inherited, class Found>
constexpr bool overridden = !std::is_same_v<Inherited, Found>;

inline uint32_t mask_of(Span<const DType> dtypes) {
  uint32_t mask = 0;
  for (const DType dtype : dtypes) mask |= 1u << static_cast<treadle_dtype>(dtype);
  return mask;
}

template <class B>
treadle_backend table_of(B& backend, const BackendDescription& description) {
  struct S {
    Backend& operator()(void* context) const { return *static_cast<Backend*>(context); }
  };
  treadle_backend t{};
  t.size = sizeof t;
  t.flags = (description.cache_memory ? TREADLE_CACHE_MEMORY : 0u) |
            (description.host_visible ? TREADLE_HOST_VISIBLE : 0u) |
            (description.addressable ? TREADLE_ADDRESSABLE : 0u);
  t.name = description.name;
  t.context = static_cast<Backend*>(&backend);
  t.storage_tag = description.storage_tag;
  t.autocast_dtype = static_cast<treadle_dtype>(description.autocast_dtype);
  t.autocast_dtypes = mask_of(description.autocast_dtypes);
  t.dtypes = mask_of(description.dtypes);

  t.allocate = [](void* c, int32_t index, size_t nbytes, void** storage) {
    return guarded([&] {
      *storage = S()(c).allocate(index, nbytes);
      if (*storage == nullptr) throw std::bad_alloc();
    });
  };
  t.deallocate = [](void* c, int32_t index, void* storage, size_t nbytes) {
    guarded([&] { S()(c).deallocate(index, storage, nbytes); });
  };
  t.copy = [](void* c, treadle_place to, treadle_place from, size_t nbytes, int32_t non_blocking) {
    return guarded([&] { return S()(c).copy(to, from, nbytes, non_blocking != 0); });
  };

#define TREADLE_OVERRIDDEN(member) \
  if constexpr (overridden<decltype(&Backend::member), decltype(&B::member)>) t.member
  TREADLE_OVERRIDDEN(device_count) = [](void* c, int32_t* count) {
    return guarded([&] { *count = S()(c).device_count(); });
  };
  TREADLE_OVERRIDDEN(set_device) = [](void* c, int32_t index) {
    return guarded([&] { S()(c).set_device(index); });
  };
  TREADLE_OVERRIDDEN(pointwise) = [](void* c, const treadle_pointwise_call* call) {
    return guarded([&] { return S()(c).pointwise(*call); });
  };
  TREADLE_OVERRIDDEN(reduce) = [](void* c, const treadle_reduce_call* call) {
    return guarded([&] { return S()(c).reduce(*call); });
  };
  TREADLE_OVERRIDDEN(synchronize) = [](void* c, int32_t index) {
    return guarded([&] { S()(c).synchronize(index); });
  };
  TREADLE_OVERRIDDEN(stream_create) = [](void* c, int32_t index, int32_t priority, uint64_t* s) {
    return guarded([&] { *s = S()(c).stream_create(index, priority); });
  };
  TREADLE_OVERRIDDEN(stream_destroy) = [](void* c, int32_t index, uint64_t stream) {
    guarded([&] { S()(c).stream_destroy(index, stream); });
  };
  TREADLE_OVERRIDDEN(stream_set) = [](void* c, int32_t index, uint64_t stream) {
    return guarded([&] { S()(c).stream_set(index, stream); });
  };
  TREADLE_OVERRIDDEN(stream_query) = [](void* c, int32_t index, uint64_t stream, int32_t* idle) {
    return guarded([&] { *idle = S()(c).stream_query(index, stream) ? 1 : 0; });
  };
  TREADLE_OVERRIDDEN(stream_synchronize) = [](void* c, int32_t index, uint64_t stream) {
    return guarded([&] { S()(c).stream_synchronize(index, stream); });
  };
  TREADLE_OVERRIDDEN(event_create) = [](void* c, int32_t index, int32_t timing, void** event) {
    return guarded([&] { *event = S()(c).event_create(index, timing != 0); });
  };
  TREADLE_OVERRIDDEN(event_destroy) = [](void* c, int32_t index, void* event) {
    guarded([&] { S()(c).event_destroy(index, event); });
  };
  TREADLE_OVERRIDDEN(event_record) = [](void* c, int32_t index, void* event, uint64_t stream) {
    return guarded([&] { S()(c).event_record(index, event, stream); });
  };
  TREADLE_OVERRIDDEN(event_wait) = [](void* c, int32_t index, void* event, uint64_t stream) {
    return guarded([&] { S()(c).event_wait(index, event, stream); });
  };
  TREADLE_OVERRIDDEN(event_query) = [](void* c, void* event, int32_t* complete) {
    return guarded([&] { *complete = S()(c).event_query(event) ? 1 : 0; });
  };
  TREADLE_OVERRIDDEN(event_synchronize) = [](void* c, void* event) {
    return guarded([&] { S()(c).event_synchronize(event); });
  };
  TREADLE_OVERRIDDEN(event_elapsed) = [](void* c, void* start, void* end, double* milliseconds) {
    return guarded([&] { *milliseconds = S()(c).event_elapsed(start, end); });
  };
  TREADLE_OVERRIDDEN(pinned_allocate) = [](void* c, size_t nbytes, void** data) {
    return guarded([&] {
      *data = S()(c).pinned_allocate(nbytes);
      if (*data == nullptr) throw std::bad_alloc();
    });
  };
  TREADLE_OVERRIDDEN(pinned_deallocate) = [](void* c, void* data, size_t nbytes) {
    guarded([&] { S()(c).pinned_deallocate(data, nbytes); });
  };
  TREADLE_OVERRIDDEN(device_name) = [](void* c, int32_t index, char* text, size_t capacity) {
    return guarded([&] {
      const std::string name = S()(c).device_name(index);
      if (capacity == 0) return;
      const size_t length = std::min(name.size(), capacity - 1);
      std::memcpy(text, name.data(), length);
      text[length] = '\0';
    });
  };
  TREADLE_OVERRIDDEN(memory_info) = [](void* c, int32_t index, size_t* free, size_t* total) {
    return guarded([&] {
      const Memory memory = S()(c).memory_info(index);
      *free = memory.free;
      *total = memory.total;
    });
  };
#undef TREADLE_OVERRIDDEN
  return t;
}

}  // namespace detail

// Registers a kind of device. `backend` lives as long as the process from now on. ValueError if the
// name is taken or malformed.
template <class B>
treadle_device_type register_backend(const BackendDescription& description,
                                     std::unique_ptr<B> backend) {
  static_assert(std::is_base_of_v<Backend, B>, "a backend derives from treadle::plugin::Backend");
  const treadle_backend table = detail::table_of(*backend, description);
  treadle_device_type type = 0;
  succeed(api().register_backend(&table, &type));
  backend.release();
  return type;
}
template <class B>
treadle_device_type register_backend(const BackendDescription& description) {
  return register_backend(description, std::make_unique<B>());
}

// This thread's current device and stream of a kind of device.
inline int32_t current_device(treadle_device_type type) { return api().current_device(type); }
inline uint64_t current_stream(treadle_device_type type) { return api().current_stream(type); }

// An id for tensors of another layout, by name. ValueError if the name is taken.
inline Layout register_layout(const char* name) {
  int32_t layout = 0;
  succeed(api().register_layout(name, &layout));
  return static_cast<Layout>(layout);
}

}  // namespace treadle::plugin

#pragma GCC visibility pop
