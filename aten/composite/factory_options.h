// What all factories share: FactoryOptions, the dtype and device of a new tensor from optional
// arguments, and fresh().
#pragma once

#include <optional>

#include "aten/composite/named_errors.h"
#include "core/tensor.h"

namespace treadle::composite {

struct FactoryOptions {
  const char* op;
  ScalarType dtype;
  Device device;

  // What is not given is taken from `otherwise`. NotImplementedError for a layout or pinned memory
  // that nothing provides.
  FactoryOptions(const char* op, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                 std::optional<Device> device, std::optional<bool> pin_memory,
                 ScalarType dtype_otherwise, Device device_otherwise = kCPU)
      : op(op), dtype(dtype.value_or(dtype_otherwise)), device(device.value_or(device_otherwise)) {
    check<ErrorKind::NotImplemented>(!layout || *layout == Layout::Strided, op,
                                     ": expected layout = treadle.strided, got layout = ", layout);
    check<ErrorKind::Runtime>(
        !pin_memory || !*pin_memory, op,
        ": expected pin_memory = False, as no device here uses pinned memory, got True");
  }

  Tensor empty(IntList sizes) const {
    return named(op, [&] { return empty_tensor(sizes, dtype, device); });
  }
  Tensor empty_strided(IntList sizes, IntList strides) const {
    return named(op, [&] { return empty_strided_tensor(sizes, strides, dtype, device); });
  }
};

// The result of an operator that made `t` and wrote it: nobody has seen it, so its versions start
// here.
inline Tensor fresh(Tensor t) {
  t.storage()->version().store(0, std::memory_order_relaxed);
  return t;
}

}  // namespace treadle::composite
