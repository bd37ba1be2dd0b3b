// The functions of treadle_api, each implemented by the library's own functions.
//
// SPDX-License-Identifier: Apache-2.0
#include "plugin/host/api.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

#include "core/base/fork_safe_mutex.h"
#include "core/device/backend.h"
#include "core/dispatch/dispatcher.h"
#include "core/schema/function_schema.h"
#include "core/threads/parallel.h"
#include "plugin/host/boundary.h"
#include "plugin/host/registration.h"

#ifndef TREADLE_VERSION
#error "the build says the version"
#endif

namespace treadle::plugin {
namespace {

IntList list_of(const int64_t* values, int32_t count) {
  check<ErrorKind::Value>(count >= 0, "expected a number of dimensions >= 0, got ", count);
  return IntList(values, static_cast<size_t>(count));
}

// ---- errors and registration ----

treadle_status set_error(treadle_status kind, const char* text) {
  last_error() = text ? text : "";
  return kind;
}
const char* last_error_text() { return last_error().c_str(); }

treadle_status api_register_backend(const treadle_backend* backend, treadle_device_type* type) {
  return guarded([&] { *type = static_cast<int32_t>(register_backend(*backend)); });
}
treadle_status api_register_layout(const char* name, int32_t* layout) {
  return guarded([&] { *layout = static_cast<int32_t>(register_layout(name)); });
}
treadle_status api_register_kernel(const char* schema, treadle_device_type device,
                                   const treadle_dtype* dtypes, size_t dtype_count,
                                   treadle_kernel kernel, void* context) {
  return guarded([&] {
    register_kernel(schema, from_c({device, -1}).type, dtypes, dtype_count, kernel, context);
  });
}
treadle_status api_define_operator(const treadle_definition* definition) {
  return guarded([&] { define_operator(*definition); });
}

// ---- tensors ----

void retain(treadle_tensor* t) { impl_of(t)->retain(); }
void release_tensor(treadle_tensor* t) {
  if (t) impl_of(t)->release();
}
treadle_dtype dtype(const treadle_tensor* t) { return to_c(impl_of(t)->dtype()); }
treadle_device device(const treadle_tensor* t) { return to_c(impl_of(t)->device()); }
int32_t layout(const treadle_tensor* t) { return static_cast<int32_t>(impl_of(t)->layout()); }
int32_t dim(const treadle_tensor* t) { return static_cast<int32_t>(impl_of(t)->dim()); }
const int64_t* sizes(const treadle_tensor* t) { return impl_of(t)->sizes().data(); }
const int64_t* strides(const treadle_tensor* t) { return impl_of(t)->strides().data(); }
int64_t numel(const treadle_tensor* t) { return impl_of(t)->numel(); }
int32_t is_contiguous(const treadle_tensor* t) { return impl_of(t)->is_contiguous(); }
// Kernels are given tensors that lie in their storage, and whose bytes are there. Of other tensors,
// which a plug-in may find elsewhere, the address is null where asking for it raises an error: no
// exception may cross the boundary.
void* storage(const treadle_tensor* t) {
  try {
    return impl_of(t)->storage_data();
  } catch (const std::exception&) {
    return nullptr;
  }
}
size_t storage_nbytes(const treadle_tensor* t) { return impl_of(t)->storage()->nbytes(); }
int64_t storage_offset(const treadle_tensor* t) { return impl_of(t)->storage_offset(); }
void* data(const treadle_tensor* t) {
  void* const first = storage(t);
  return first ? static_cast<char*>(first) + storage_offset(t) * item_size(impl_of(t)->dtype())
               : nullptr;
}

treadle_status empty(const int64_t* sizes, const int64_t* strides, int32_t dim, treadle_dtype dtype,
                     treadle_device device, treadle_tensor** tensor) {
  return guarded([&] {
    const IntList shape = list_of(sizes, dim);
    const ScalarType type = dtype_from_c(dtype);
    *tensor = given_away(
        strides ? empty_strided_tensor(shape, list_of(strides, dim), type, from_c(device))
                : empty_tensor(shape, type, from_c(device)));
  });
}

treadle_status from_memory(void* storage, const int64_t* sizes, int32_t dim, treadle_dtype dtype,
                           treadle_device device, void (*release)(void* context), void* context,
                           treadle_tensor** tensor) {
  return guarded([&] {
    const IntList shape = list_of(sizes, dim);
    const ScalarType type = dtype_from_c(dtype);
    const size_t nbytes =
        static_cast<size_t>(checked_numel(shape, item_size(type)) * item_size(type));
    std::function<void()> done;
    if (release) done = [release, context] { release(context); };
    *tensor = given_away(Tensor(make_intrusive<TensorImpl>(
        make_intrusive<StorageImpl>(storage, nbytes, from_c(device), std::move(done)), type,
        shape)));
  });
}

treadle_status as_strided(const treadle_tensor* tensor, const int64_t* sizes,
                          const int64_t* strides, int32_t dim, int64_t offset,
                          treadle_tensor** view) {
  return guarded([&] {
    *view = given_away(
        alias_with_geometry(tensor_of(tensor), list_of(sizes, dim), list_of(strides, dim), offset));
  });
}

size_t api_item_size(treadle_dtype dtype) {
  return dtype >= 0 && dtype < kNumScalarTypes
             ? static_cast<size_t>(item_size(static_cast<ScalarType>(dtype)))
             : 0;
}
const char* dtype_name(treadle_dtype dtype) {
  // Names are literals, so they end with 0.
  return dtype >= 0 && dtype < kNumScalarTypes ? name_of(static_cast<ScalarType>(dtype)).data()
                                               : "unknown";
}

// ---- operators ----

const Operator& operator_of(const treadle_operator* op) {
  return *reinterpret_cast<const Operator*>(op);
}

int32_t tag_of(const schema::Type& type) {
  using schema::BaseType;
  switch (type.base) {
    case BaseType::Tensor:
      return type.list ? TREADLE_TAG_TENSORS : TREADLE_TAG_TENSOR;
    case BaseType::Scalar:
      return TREADLE_TAG_COMPLEX;
    case BaseType::Int:
    case BaseType::SymInt:
      return type.list ? TREADLE_TAG_INTS : TREADLE_TAG_INT;
    case BaseType::Float:
    case BaseType::SymFloat:
      return type.list ? TREADLE_TAG_FLOATS : TREADLE_TAG_FLOAT;
    case BaseType::Bool:
    case BaseType::SymBool:
      return type.list ? TREADLE_TAG_BOOLS : TREADLE_TAG_BOOL;
    case BaseType::Str:
      return TREADLE_TAG_TEXT;
    case BaseType::ScalarType:
      return TREADLE_TAG_DTYPE;
    case BaseType::Layout:
      return TREADLE_TAG_LAYOUT;
    case BaseType::Device:
      return TREADLE_TAG_DEVICE;
    case BaseType::MemoryFormat:
      return TREADLE_TAG_MEMORY_FORMAT;
    case BaseType::Generator:
      return TREADLE_TAG_GENERATOR;
    default:
      return TREADLE_TAG_NONE;
  }
}

// The result of operator_info() for an operator. It lives forever, and so do the objects it points
// to.
struct Description {
  std::deque<std::string> texts;
  std::vector<treadle_argument_info> arguments, results;
  size_t outputs = 0;

  explicit Description(const Operator& op) {
    const schema::FunctionSchema& schema = op.schema();
    const auto info = [&](const std::string& name, const schema::Type& type) {
      const char* const name_text = texts.emplace_back(name).c_str();
      return treadle_argument_info{name_text, texts.emplace_back(schema::print(type)).c_str(),
                                   tag_of(type), type.optional};
    };
    for (const schema::Argument& a : schema.arguments) arguments.push_back(info(a.name, a.type));
    for (const schema::Return& r : schema.returns) results.push_back(info(r.name, r.type));
    const OperatorKind kind = op.entry().kind;
    const bool fills = kind == OperatorKind::Kernel || kind == OperatorKind::Pointwise ||
                       kind == OperatorKind::Reduce;
    outputs = fills ? results.size() : 0;
  }
};

const Description& description_of(const Operator& op) {
  static auto* mutex = new ForkSafeMutex;
  static auto* known = new std::map<const Operator*, Description>;
  const std::lock_guard lock(*mutex);
  return known->try_emplace(&op, op).first->second;
}

treadle_status api_when_device(const char* name,
                               treadle_status (*found)(void*, treadle_device_type), void* context) {
  return guarded([&] {
    check<ErrorKind::Value>(name != nullptr && *name != 0,
                            "expected the name of a device, got none");
    when_device(name, found, context);
  });
}

treadle_status find(const char* name, const treadle_operator** op) {
  return guarded([&] {
    std::string full = name ? name : "";
    if (full.find("::") == std::string::npos) full.insert(0, "aten::");
    *op = reinterpret_cast<const treadle_operator*>(&Dispatcher::instance().at(full));
  });
}

treadle_status operator_info(const treadle_operator* op, treadle_operator_info* info) {
  return guarded([&] {
    const Operator& o = operator_of(op);
    const Description& d = description_of(o);
    const treadle_operator_info full{sizeof full,        o.entry().kind == OperatorKind::Returns,
                                     o.info().name,      o.info().schema,
                                     d.arguments.data(), d.arguments.size(),
                                     d.outputs,          d.results.data(),
                                     d.results.size()};
    const uint32_t size = std::min<uint32_t>(info->size, sizeof full);
    std::memcpy(info, &full, size);
    info->size = size;
  });
}

treadle_status call(const treadle_operator* op, const treadle_value* arguments, size_t count,
                    treadle_value* results, size_t capacity, size_t* result_count) {
  return guarded([&] {
    const Operator& o = operator_of(op);
    const schema::FunctionSchema& schema = o.schema();
    check<ErrorKind::Type>(count <= schema.arguments.size(), OpName(o.info().base_name),
                           "expected at most ", schema.arguments.size(), " arguments, got ", count);
    Stack stack;
    for (size_t i = 0; i < schema.arguments.size(); ++i) {
      const schema::Argument& a = schema.arguments[i];
      stack.push_back(i < count ? from_c(arguments[i], a.type, a.name) : default_of(a));
    }
    o.call_boxed(stack);
    check<ErrorKind::Value>(stack.size() <= capacity, OpName(o.info().base_name),
                            "expected room for ", stack.size(), " results, got ", capacity);
    for (size_t i = 0; i < stack.size(); ++i) results[i] = given_away(stack[i]);
    *result_count = stack.size();
  });
}

void release_values(treadle_value* values, size_t count) {
  for (size_t i = 0; i < count; ++i) release(values[i]);
}

treadle_status make_tensors(treadle_tensor* const* tensors, size_t count, treadle_value* value) {
  return guarded([&] {
    Value::Tensors list;
    for (size_t i = 0; i < count; ++i) list.push_back(adopted(tensors[i]));
    *value = given_away(Value(std::move(list)));
  });
}

// ---- random numbers, threads, current device ----

treadle_status reserve_random(treadle_generator* generator, treadle_device device, uint64_t blocks,
                              uint64_t* seed, uint64_t* offset) {
  return guarded([&] {
    const Generator given(reinterpret_cast<GeneratorImpl*>(generator));
    const Device exact = with_index(from_c(device));
    const GeneratorImpl::Position at = generator_or_default(given, exact)->reserve(blocks);
    *seed = at.seed;
    *offset = at.offset;
  });
}

treadle_status api_parallel_for(int64_t count, int64_t grain,
                                treadle_status (*body)(void*, int64_t, int64_t), void* context) {
  return guarded([&] {
    parallel_for(count, std::max<int64_t>(grain, 1),
                 [&](int64_t begin, int64_t end) { check_status(body(context, begin, end)); });
  });
}

int32_t api_current_device(treadle_device_type type) {
  return type > 1 && type < num_device_types() ? current_device(static_cast<DeviceType>(type)) : 0;
}
uint64_t api_current_stream(treadle_device_type type) {
  return type > 1 && type < num_device_types() ? current_stream({static_cast<DeviceType>(type), -1})
                                               : 0;
}

constexpr treadle_api kApi = {
    .size = sizeof(treadle_api),
    .version = TREADLE_PLUGIN_VERSION,
    .treadle_version = TREADLE_VERSION,
    .set_error = &set_error,
    .last_error = &last_error_text,
    .register_backend = &api_register_backend,
    .register_layout = &api_register_layout,
    .register_kernel = &api_register_kernel,
    .define_operator = &api_define_operator,
    .retain = &retain,
    .release = &release_tensor,
    .dtype = &dtype,
    .device = &device,
    .layout = &layout,
    .dim = &dim,
    .sizes = &sizes,
    .strides = &strides,
    .numel = &numel,
    .is_contiguous = &is_contiguous,
    .storage = &storage,
    .storage_nbytes = &storage_nbytes,
    .storage_offset = &storage_offset,
    .data = &data,
    .empty = &empty,
    .from_memory = &from_memory,
    .as_strided = &as_strided,
    .item_size = &api_item_size,
    .dtype_name = &dtype_name,
    .find = &find,
    .operator_info = &operator_info,
    .call = &call,
    .release_values = &release_values,
    .make_tensors = &make_tensors,
    .reserve_random = &reserve_random,
    .parallel_for = &api_parallel_for,
    .current_device = &api_current_device,
    .current_stream = &api_current_stream,
    .when_device = &api_when_device,
};

}  // namespace

const treadle_api* host_api() { return &kApi; }
const char* host_version() { return TREADLE_VERSION; }

}  // namespace treadle::plugin
