// Registers the backends, kernels and operators of plug-ins, and calls their kernels.
//
// SPDX-License-Identifier: Apache-2.0
#include "plugin/host/registration.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "aten/engine/backends/fallback.h"
#include "core/base/fork_safe_mutex.h"
#include "core/device/backend.h"
#include "core/dispatch/call_counts.h"
#include "core/dispatch/dispatcher.h"
#include "core/dispatch/dynamic_operator.h"
#include "plugin/host/boundary.h"
#include "plugin/host/plugin_backend.h"

namespace treadle::plugin {
namespace {

thread_local Start* t_start = nullptr;

// The place of a registration that is not made by the plug-in that is starting.
thread_local const std::string* t_place = nullptr;

std::string place_now() {
  if (t_place) return *t_place;
  return t_start ? t_start->place() : "a plug-in";
}
KernelOrigin place_of(const std::string& text) {
  return KernelOrigin{KernelSource::DeviceLayout, text.c_str(), 0, ""};
}
void note(std::function<void()> undo) {
  if (t_start) t_start->note(std::move(undo));
}

// ---- kernels ----

// A plug-in's kernel, which is the context of the boxed one. Lives for ever: calls may be in it.
struct Kernel {
  treadle_kernel function;
  void* context;
  schema::FunctionSchema schema;
  bool returns;  // it makes the results itself
};
// That of an operator on a device.
struct DeviceKernel : Kernel {
  DeviceKernel(Kernel kernel, DeviceType type, const Operator& op)
      : Kernel(std::move(kernel)), calls(type, op) {}
  mutable NativeCalls calls;
};

// A kernel that calls its own operator would use up the stack.
class Depth {
 public:
  explicit Depth(const Operator& op) {
    check<ErrorKind::Runtime>(++depth_ <= kMax, OpName(op.info().base_name),
                              "expected kernels that call each other at most ", kMax,
                              " deep, got more; does the kernel call its own operator?");
  }
  ~Depth() { --depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  static constexpr int kMax = 200;
  static thread_local constinit int depth_ __attribute__((tls_model("initial-exec")));
};
thread_local constinit int Depth::depth_ = 0;

// The error of an operator's kernel: its message is about the operator, also where the plug-in does
// not name it.
void check_status_of(const Operator& op, treadle_status status) {
  if (status == TREADLE_OK) [[likely]]
    return;
  Error error = error_of(status);
  const OpName name(op.info().base_name);
  if (error.op() != name.text()) error = Error(error.kind(), name, error.what());
  throw error;
}

// Calls the kernel with the whole stack; results that it makes take the stack's place. False where
// the kernel declines: the stack is as it was.
template <class Check>
bool call_kernel(const Operator& op, const Kernel& kernel, Stack& stack, Check&& check_it) {
  const Depth depth(op);
  const BorrowedValues arguments(stack);
  std::vector<treadle_value> results(kernel.returns ? kernel.schema.returns.size() : 0);
  for (treadle_value& r : results) std::memset(&r, 0, sizeof r);
  const treadle_status status = kernel.function(kernel.context, arguments.data(), arguments.size(),
                                                results.data(), results.size());
  if (status == TREADLE_DECLINED) return false;
  check_it(status);
  Stack made;
  for (size_t i = 0; i < results.size(); ++i)
    made.push_back(adopted(results[i], kernel.schema.returns[i].type));
  stack = std::move(made);
  return true;
}

// A result that a kernel of a device made must be a new tensor of that device.
void check_result(const Operator& op, const Value& result, Device device, const Stack& arguments) {
  const Tensor t = result.is<Tensor>() ? result.as<Tensor>() : Tensor();
  check<ErrorKind::Runtime>(t.defined() && t.device() == device, OpName(op.info().base_name),
                            "expected its kernel to return a tensor on ", device, ", got ",
                            t.defined() ? str("one on ", t.device()) : std::string("none"));
  for (const Value& a : arguments)
    check<ErrorKind::Runtime>(!a.is<Tensor>() || !a.as<Tensor>().is_same(t),
                              OpName(op.info().base_name),
                              "expected its kernel to return a new tensor, got an argument");
}

// The kernel declines: the call, of an operator with these arguments and outputs, is made on the
// CPU.
void run_on_cpu(const Operator& op, ArrayRef<BorrowedValue> values) {
  const auto& arguments = op.entry().op->schema().arguments;
  Stack stack;
  for (size_t i = 0; i < values.size(); ++i) {
    const treadle_value& value = *to_c(&values[i]);
    stack.push_back(i < arguments.size() ? from_c(value, arguments[i].type, arguments[i].name)
                                         : Value(tensor_of(value.as.tensor)));
  }
  cpu_fallback(op, stack);
}

// BoxedKernel::Fill of a kernel that fills outputs: no lock, no look-up, no allocation.
void fill_by_kernel(void* context, const Operator& op, ArrayRef<BorrowedValue> arguments) {
  const auto& kernel = *static_cast<const DeviceKernel*>(context);
  const treadle_value* const values = to_c(arguments.data());
  for (size_t i = 0; i < arguments.size(); ++i) require_memory(values[i]);
  treadle_status status;
  {
    const Depth depth(op);
    status = kernel.function(kernel.context, values, arguments.size(), nullptr, 0);
  }
  if (status == TREADLE_DECLINED) return run_on_cpu(op, arguments);
  check_status_of(op, status);
  kernel.calls.add();
}

// A kernel that makes its results.
void run_returning(void* context, const Operator& op, Stack& stack) {
  const auto& kernel = *static_cast<const DeviceKernel*>(context);
  const Device device = device_in(stack);
  const Stack arguments = stack;
  const auto check_it = [&](treadle_status status) { check_status_of(op, status); };
  if (!call_kernel(op, kernel, stack, check_it)) {
    cpu_fallback(op, stack);
    return;
  }
  kernel.calls.add();
  for (size_t i = 0; i < stack.size(); ++i) {
    const schema::Type& type = kernel.schema.returns[i].type;
    if (type.is_tensor() && !type.list) check_result(op, stack[i], device, arguments);
  }
}

// A kernel that fills outputs, by a call with a stack.
void run_filling(void* context, const Operator& op, Stack& stack) {
  const auto& kernel = *static_cast<const DeviceKernel*>(context);
  const auto check_it = [&](treadle_status status) { check_status_of(op, status); };
  if (call_kernel(op, kernel, stack, check_it))
    kernel.calls.add();
  else
    cpu_fallback(op, stack);
}

BoxedKernel boxed(DeviceKernel* kernel) {
  if (kernel->returns) return {&run_returning, kernel};
  return {&run_filling, kernel, &fill_by_kernel};
}

// The dtypes of a kernel that lists none: those that the operator is declared for, which are the
// CPU's. A call in another dtype is refused before the kernel sees it, as on the CPU. Empty, for
// all, where the CPU has no kernel.
std::vector<ScalarType> declared_dtypes(const Operator& op) {
  std::vector<ScalarType> declared;
  const KernelRow* cpu =
      op.has_table() ? op.table().row(DeviceType::CPU, Layout::Strided) : nullptr;
  for (size_t t = 0; cpu && t < kNumScalarTypes; ++t) {
    if (cpu->kernels[t] || cpu->boxed[t]) declared.push_back(static_cast<ScalarType>(t));
  }
  return declared;
}

bool makes_results(const Operator& op) { return op.entry().kind == OperatorKind::Returns; }

// ---- operators defined at run time ----

void run_defined(void* context, const Operator& op, Stack& stack) {
  check<ErrorKind::NotImplemented>(
      call_kernel(op, *static_cast<const Kernel*>(context), stack, &check_status),
      OpName(op.info().base_name),
      "expected the operator's own function to compute the call, got one that declines");
}

// ---- devices of other plug-ins ----

struct Waiting {
  std::string name, place;
  treadle_status (*found)(void*, treadle_device_type);
  void* context;
};
struct WaitingList {
  ForkSafeMutex mutex;
  std::vector<Waiting> all;
};
WaitingList& waiting() {
  static auto* list = new WaitingList;
  return *list;
}

// Without a lock: what is called registers kernels.
void tell_waiting(const std::string& name, DeviceType type) {
  std::vector<Waiting> told;
  {
    WaitingList& list = waiting();
    const std::lock_guard lock(list.mutex);
    const auto rest = std::stable_partition(list.all.begin(), list.all.end(),
                                            [&](const Waiting& w) { return w.name != name; });
    told.assign(rest, list.all.end());
    list.all.erase(rest, list.all.end());
  }
  for (const Waiting& w : told) {
    t_place = &w.place;
    const treadle_status status = w.found(w.context, static_cast<int32_t>(type));
    t_place = nullptr;
    check_status(status);
  }
}

}  // namespace

Start::Start(std::string name, std::string version)
    : name_(std::move(name)), version_(std::move(version)) {
  t_start = this;
}
Start::~Start() {
  t_start = nullptr;
  for (auto it = undo_.rbegin(); it != undo_.rend(); ++it) (*it)();
}
Start* Start::current() { return t_start; }

DeviceType register_backend(const treadle_backend& given) {
  for (const DeviceType other : backends()) {
    const Backend::Facts& facts = require_backend(other).facts();
    check<ErrorKind::Value>(!given.name || facts.name != given.name,
                            "expected a new device name, got '", given.name, "', which plug-in '",
                            facts.plugin, "' ", facts.plugin_version, " has taken");
  }
  const DeviceType type = treadle::register_backend(
      make_backend(given, t_start ? t_start->name() : "", t_start ? t_start->version() : ""));
  note([type] { unregister_backend(type); });
  Dispatcher& d = Dispatcher::instance();
  if (!d.device_fallback(type))
    d.register_device_fallback(type, boxed_kernel<&cpu_fallback>, place_of(place_now()));
  tell_waiting(given.name, type);
  return type;
}

void when_device(const std::string& name, treadle_status (*found)(void*, treadle_device_type),
                 void* context) {
  check<ErrorKind::Value>(found != nullptr, "expected a function to call for the device '", name,
                          "', got none");
  for (const DeviceType type : backends()) {
    if (name_of(type) != name) continue;
    check_status(found(context, static_cast<int32_t>(type)));
    return;
  }
  WaitingList& list = waiting();
  const std::lock_guard lock(list.mutex);
  list.all.push_back({name, place_now(), found, context});
  note([context, found] {
    WaitingList& all = waiting();
    const std::lock_guard again(all.mutex);
    std::erase_if(all.all,
                  [&](const Waiting& w) { return w.context == context && w.found == found; });
  });
}

void register_kernel(const char* schema, DeviceType device, const treadle_dtype* dtypes,
                     size_t dtype_count, treadle_kernel function, void* context) {
  check<ErrorKind::Value>(schema != nullptr, "expected the schema of a kernel, got none");
  check<ErrorKind::Value>(function != nullptr, OpName(schema),
                          "expected a kernel to register, got none");
  schema::FunctionSchema parsed;
  try {
    parsed = schema::parse_schema(std::string_view(schema));
  } catch (const schema::SchemaError& error) {
    fail<ErrorKind::Value>("expected the schema of a kernel, got one with an error:\n",
                           error.what());
  }
  if (parsed.name.ns.empty()) parsed.name.ns = "aten";
  const std::string name = schema::print(parsed.name);
  Dispatcher& d = Dispatcher::instance();
  const Operator& op = d.at(name);
  std::vector<ScalarType> types;
  for (size_t i = 0; i < dtype_count; ++i) types.push_back(dtype_from_c(dtypes[i]));
  const std::string from = place_now();
  KernelOrigin place = place_of(from);
  if (dtype_count > 0)
    place.source = KernelSource::Exact;
  else
    types = declared_dtypes(op);
  auto* const kernel =
      new DeviceKernel(Kernel{function, context, std::move(parsed), makes_results(op)}, device, op);
  d.register_boxed(name, schema, device, Layout::Strided, types, boxed(kernel), place);
  note([name, device] { Dispatcher::instance().deregister(name, device, Layout::Strided); });
}

void define_operator(const treadle_definition& given) {
  treadle_definition definition{};
  std::memcpy(&definition, &given, std::min<size_t>(given.size, sizeof definition));
  check<ErrorKind::Value>(definition.schema != nullptr,
                          "expected the schema of an operator, got none");
  const std::string place = place_now();
  DynamicOperator& op = DynamicOperator::define(definition.schema, place_of(place));
  note([&op] { op.undefine(); });
  const auto kernel = [&](treadle_kernel function) {
    return BoxedKernel{&run_defined, new Kernel{function, definition.context, op.schema(), true}};
  };
  if (definition.kernel) op.set_default_kernel(kernel(definition.kernel), false, place_of(place));
  if (definition.meta) op.set_kernel(DeviceType::Meta, kernel(definition.meta), place_of(place));
}

}  // namespace treadle::plugin
