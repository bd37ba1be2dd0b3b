// Registration of hand-written kernels, and the few headers that all of them need.
#pragma once

#include "aten/cuda/backend.h"
#include "aten/cuda/device_guard.h"
#include "core/operator.h"
#include "core/tensor.h"

namespace treadle::cuda {

using Floats = TypeList<float, double, Half, BFloat16>;

// The dtypes that an operator's entry declares.
template <class Op>
using DeclaredTypes = typename Op::template Types<DeviceType::CPU>;

// Registers a kernel for the dtypes of the list: `factory.template operator()<T>()` gives that of
// T.
template <class Op, class... Ts, class Factory>
Registration register_cuda(TypeList<Ts...>, Factory factory, const char* name,
                           SourcePlace at = SourcePlace::here()) {
  std::array<void*, kMaxScalarTypes> kernels{};
  ((kernels[static_cast<size_t>(scalar_type_of<Ts>)] = reinterpret_cast<void*>(
        static_cast<typename Op::Kernel*>(factory.template operator()<Ts>()))),
   ...);
  return register_row(Op::op, DeviceType::CUDA, Layout::Strided, kernels,
                      KernelPlace{KernelSource::DeviceLayout, at.file, at.line, name});
}

}  // namespace treadle::cuda
