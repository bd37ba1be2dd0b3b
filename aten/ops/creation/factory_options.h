// Common parts of the factories: their optional arguments (FactoryOptions), the dtype and device
// that a new tensor gets from them, and fresh().
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "aten/engine/named_errors.h"
#include "core/tensor/tensor.h"

namespace treadle::composite {

// The optional arguments of a factory.
using OptDtype = std::optional<ScalarType>;
using OptLayout = std::optional<Layout>;
using OptDevice = std::optional<Device>;
using OptBool = std::optional<bool>;
using OptFormat = std::optional<MemoryFormat>;

struct FactoryOptions {
  const char* op;
  ScalarType dtype;
  Device device;

  // A missing one is taken from `otherwise`. NotImplementedError for a layout or pinned memory that
  // no part of Treadle provides.
  FactoryOptions(const char* op, OptDtype dtype, OptLayout layout, OptDevice device,
                 OptBool pin_memory, ScalarType dtype_otherwise, Device device_otherwise = kCPU)
      : op(op), dtype(dtype.value_or(dtype_otherwise)), device(device.value_or(device_otherwise)) {
    check<ErrorKind::NotImplemented>(!layout || *layout == Layout::Strided, OpName(op),
                                     "expected layout = treadle.strided, got layout = ", layout);
    check<ErrorKind::Runtime>(
        !pin_memory || !*pin_memory, OpName(op),
        "expected pin_memory = False, as no device here uses pinned memory, got True");
  }

  Tensor empty(IntList sizes) const {
    return named(op, [&] { return empty_tensor(sizes, dtype, device); });
  }
  Tensor empty_strided(IntList sizes, IntList strides) const {
    return named(op, [&] { return empty_strided_tensor(sizes, strides, dtype, device); });
  }
};

// The result of an operator that made and wrote `t`. No other code has seen it, so its version
// count starts here.
inline Tensor fresh(Tensor t) {
  t.storage()->version().store(0, std::memory_order_relaxed);
  return t;
}

}  // namespace treadle::composite
