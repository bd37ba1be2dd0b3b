// Kernel tables and layers of one operator, and the error for a call without a kernel.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/dispatch/operator.h"

#include <deque>
#include <memory>

#include "core/dispatch/dispatcher.h"
#include "core/schema/function_schema.h"

namespace treadle {

size_t detail::first_argument(const Stack& stack, size_t n) {
  check<ErrorKind::Type>(stack.size() >= n, "expected ", n, " arguments, got ", stack.size());
  return stack.size() - n;
}

void detail::replace_arguments(Stack& stack, size_t first, Stack&& results) {
  stack.resize(first);
  for (Value& v : results) stack.push_back(std::move(v));
}

std::string_view name_of(KernelSource source) {
  switch (source) {
    case KernelSource::Exact:
      return "exact";
    case KernelSource::DeviceLayout:
      return "device";
    case KernelSource::Generated:
      return "generated";
    case KernelSource::Composite:
      return "composite";
    case KernelSource::Fallback:
      return "fallback";
  }
  return "unknown";
}

std::string_view name_of(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::Pointwise:
      return "pointwise";
    case OperatorKind::Reduce:
      return "reduce";
    case OperatorKind::Kernel:
      return "kernel";
    case OperatorKind::Returns:
      return "returns";
    case OperatorKind::View:
      return "view";
    case OperatorKind::Composite:
      return "composite";
    case OperatorKind::Mutating:
      return "mutating";
  }
  return "unknown";
}

void KernelTable::publish(DeviceType device, Layout layout, KernelRow* row) {
  const size_t d = static_cast<size_t>(device);
  if (layout == Layout::Strided) {
    strided_[d].store(row, std::memory_order_release);
    return;
  }
  OtherLayouts* others = others_.load(std::memory_order_relaxed);
  if (!others) {
    // Calls may read it for as long as the program runs.
    static auto* const all = new std::deque<OtherLayouts>;
    others = &all->emplace_back();
    others_.store(others, std::memory_order_release);
  }
  others->rows[d][static_cast<size_t>(layout)].store(row, std::memory_order_release);
}

const schema::FunctionSchema& Operator::parse_schema() const {
  // Operators are never freed, and threads may parse at the same time: one schema stays.
  auto parsed = std::make_unique<const schema::FunctionSchema>(
      schema::parse_schema(std::string_view(info().schema)));
  const schema::FunctionSchema* there = nullptr;
  if (schema_.compare_exchange_strong(there, parsed.get(), std::memory_order_acq_rel))
    return *parsed.release();
  return *there;
}

void Operator::set_layer(Layer layer, void* function, const BoxedKernel* boxed,
                         KernelOrigin place) {
  const size_t i = static_cast<size_t>(layer);
  if (layers() & layer_bit(layer)) {
    const KernelOrigin& there = layer_places_[i];
    if (there.source < place.source) return;
    check<ErrorKind::Runtime>(place.source < there.source || place.source == KernelSource::Fallback,
                              OpName(info().name), "expected one function for the layer ",
                              name_of(layer), ", got a second at ", place.file, ":", place.line,
                              "; the first is at ", there.file, ":", there.line);
  }
  // A call reads the function and, where that is null, the boxed kernel, without a lock. It finds
  // the old or the new in any case: a boxed kernel is there before a function goes, and stays.
  if (boxed) std::atomic_ref(layer_boxed_[i]).store(boxed, std::memory_order_release);
  std::atomic_ref(layer_functions_[i]).store(function, std::memory_order_release);
  layer_places_[i] = place;
  layers_.fetch_or(layer_bit(layer), std::memory_order_release);
}

Registration register_row(Operator& op, DeviceType device, Layout layout,
                          const std::array<void*, kMaxScalarTypes>& kernels,
                          const KernelOrigin& place) {
  // While a library loads nobody can catch an exception.
  try {
    Dispatcher::instance().register_row(op, device, layout, kernels, place);
  } catch (const Error& error) {
    Dispatcher::instance().record_registration_error(error.what());
  }
  return {};
}

Registration register_layer_function(Operator& op, Layer layer, void* function,
                                     const KernelOrigin& place) {
  try {
    op.set_layer(layer, function, nullptr, place);
  } catch (const Error& error) {
    Dispatcher::instance().record_registration_error(error.what());
  }
  return {};
}

namespace {

// The cells of an operator that have kernels, as text: cpu (float32, float64); cuda (float32).
struct KernelCells {
  const Operator& op;
};

std::string to_string(const KernelCells& cells) {
  const Operator& op = cells.op;
  std::string known;
  known.reserve(256);
  for (int d = 0; d < num_device_types(); ++d) {
    for (int l = 0; l < kMaxLayouts; ++l) {
      const auto row_device = static_cast<DeviceType>(d);
      const auto row_layout = static_cast<Layout>(l);
      const KernelRow* row = op.has_table() ? op.table().row(row_device, row_layout) : nullptr;
      if (!row) continue;
      const size_t before = known.size();
      if (before > 0) known += "; ";
      known += name_of(row_device);
      if (row_layout != Layout::Strided) (known += ' ') += name_of(row_layout);
      known += " (";
      const size_t first = known.size();
      for (int t = 0; t < kNumScalarTypes; ++t) {
        if (!row->kernels[t] && !row->boxed[t]) continue;
        if (known.size() > first) known += ", ";
        known += name_of(static_cast<ScalarType>(t));
      }
      if (known.size() > first)
        known += ')';
      else
        known.resize(before);
    }
  }
  return known.empty() ? "none" : known;
}

}  // namespace

void no_kernel(const Operator& op, Device device, Layout layout, ScalarType dtype) {
  fail<ErrorKind::NotImplemented>(OpName(op.info().base_name),
                                  "expected a device, layout and dtype that has a kernel, got ",
                                  name_of(device.type), ", ", name_of(layout), ", ", name_of(dtype),
                                  "\nkernels exist for: ", KernelCells{op});
}

const BoxedKernel* find_boxed(const Operator& op, Device device, Layout layout, ScalarType dtype) {
  if (is_stored(dtype)) return nullptr;
  const size_t t = static_cast<size_t>(dtype);
  if (op.has_table()) {
    if (const KernelRow* row = op.table().row(device.type, layout)) {
      if (row->boxed[t]) return row->boxed[t];
      if (row->kernels[t]) return nullptr;
    }
    // A fallback serves what the CPU serves: what it lacks is found before anything is made.
    const KernelRow* cpu = op.table().row(DeviceType::CPU, layout);
    if (!device.is_cpu() && cpu && !cpu->boxed[t] && !cpu->kernels[t]) return nullptr;
  }
  return Dispatcher::instance().device_fallback(device.type);
}

}  // namespace treadle
