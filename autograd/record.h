// The helpers with which generated code records an operator. Every generated file of autograd
// includes this header.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/ops/gradients.h"
#include "autograd/meta.h"
#include "autograd/ops_syntax.h"
#include "autograd/saved_tensor.h"
#include "autograd/saved_visitor.h"
#include "autograd/view.h"
#include "core/dispatch/operator.h"

namespace treadle::autograd {

// Calls the operator below the autograd layer.
template <class Op, class... Args>
inline auto call_below(const Args&... args) {
  const ExcludeLayers below(Layer::Autograd);
  return dispatch<Op>(args...);
}

// Metadata of an argument that may be undefined.
inline DimVector sizes_of(const Tensor& t) {
  return t.defined() ? DimVector(t.sizes()) : DimVector();
}
inline DimVector strides_of(const Tensor& t) {
  return t.defined() ? DimVector(t.strides()) : DimVector();
}
inline int64_t dim_of(const Tensor& t) { return t.defined() ? t.dim() : 0; }
inline int64_t numel_of(const Tensor& t) { return t.defined() ? t.numel() : 0; }
inline ScalarType dtype_of(const Tensor& t) {
  return t.defined() ? t.dtype() : ScalarType::Float32;
}
inline Device device_of(const Tensor& t) { return t.defined() ? t.device() : kCPU; }
inline int64_t size_at(IntList sizes, int64_t d) {
  return sizes[static_cast<size_t>(wrap_dim("size", d, static_cast<int64_t>(sizes.size())))];
}

// Keeps a list argument by value; std::nullopt stays std::nullopt.
inline std::optional<DimVector> keep(const OptionalIntList& list) {
  return list ? std::optional<DimVector>(DimVector(*list)) : std::nullopt;
}
inline std::optional<std::string> keep(const std::optional<std::string_view>& text) {
  return text ? std::optional<std::string>(std::string(*text)) : std::nullopt;
}
inline std::optional<std::vector<double>> keep(const std::optional<DoubleList>& list) {
  return list ? std::optional<std::vector<double>>(list->vec()) : std::nullopt;
}

// The value that an in-place operator saves of another argument. It is a copy if that is the tensor
// about to be changed, whose history would otherwise lead to itself.
Tensor kept_for_backward(const Tensor& argument, const Tensor& self);

// Each tensor of a list that `op`, an operator without a derivative, changed in place gets its own
// history, through which no gradient comes.
template <class... Arguments>
void rebase_undifferentiable(const char* op, TensorList written, const Arguments&... arguments) {
  for (const Tensor& t : written) {
    if (!is_differentiable(t.dtype())) continue;
    auto node = make_intrusive<UndifferentiableNode>(op);
    (add_edges(*node, arguments), ...);
    rebase_history(t, std::move(node));
  }
}

// Puts the gradients of a list argument in their positions.
inline void put(Grads& out, size_t first, size_t count, std::vector<Tensor> grads) {
  for (size_t i = 0; i < count && i < grads.size(); ++i) out[first + i] = std::move(grads[i]);
}
inline bool any_defined(const Grads& grads) {
  for (const Tensor& g : grads)
    if (g.defined()) return true;
  return false;
}
// The gradient, or zeros for a missing one.
Tensor or_zeros(const Tensor& grad, const InputMetadata& expected);
inline TensorList as_list(const Grads& grads) { return {grads.data(), grads.size()}; }

}  // namespace treadle::autograd
