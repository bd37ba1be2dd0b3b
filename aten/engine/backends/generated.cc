// Passes pointwise and reduce calls to backends that make kernels from expressions.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/backends/generated.h"

#include "aten/engine/loop_geometry.h"
#include "aten/ops/_local_scalar_dense.h"
#include "core/schema/function_schema.h"

namespace treadle {
namespace {

// The backend of a tensor's device, where it makes kernels; else null.
Backend* generating(const Tensor& t) {
  Backend* const backend = backend_of(t.device().type);
  return backend != nullptr && backend->facts().generates ? backend : nullptr;
}

}  // namespace

bool run_generated(const Operator& op, const Tensor& out, const DimVector& out_strides,
                   ArrayRef<const Tensor*> inputs, const DimVector* input_strides,
                   ArrayRef<Scalar> numbers, IntList shape, ScalarType compute) {
  Backend* const backend = generating(out);
  if (backend == nullptr) return false;
  GeneratedPointwise call;
  call.name = op.info().base_name;
  call.body = op.entry().pointwise;
  call.device = out.device();
  call.shape = shape;
  call.numel = out.numel();
  call.compute = compute;
  call.out = {&out, out_strides.data(), "out"};
  size_t tensor = 0, number = 0;
  // The numbers of the schema follow those that stand for tensors.
  for (const schema::Argument& a : op.schema().arguments) {
    if (!a.type.is_tensor()) continue;
    const Tensor& t = *inputs[tensor];
    if (t.is_cpu())
      call.numbers[call.number_count++] = {a.name.c_str(), aten::ops::_local_scalar_dense::base(t)};
    else
      call.inputs[call.input_count++] = {&t, input_strides[tensor].data(), a.name.c_str()};
    ++tensor;
  }
  for (const schema::Argument& a : op.schema().arguments) {
    if (!a.type.is_tensor() && number < numbers.size())
      call.numbers[call.number_count++] = {a.name.c_str(), numbers[number++]};
  }
  return backend->pointwise(call);
}

bool run_generated(const Operator& op, const ReduceCall& call, const Tensor& out,
                   const Tensor& in) {
  Backend* const backend = generating(out);
  return backend != nullptr &&
         backend->reduce({op.info().base_name, op.entry().reduce, call, out, in});
}

bool convert_generated(const Tensor& out, const Tensor& self) {
  static constexpr ExpressionNode kSelf[] = {{ExpressionKind::Name, 0, {}, "self", 0, 0}};
  static constexpr Expression kCopy{kSelf, 1};
  Backend* const backend = generating(out);
  if (backend == nullptr) return false;
  LoopGeometry g(out.sizes());
  g.add(out.strides(), out.element_size());
  g.add(broadcast_strides(out.sizes(), self.sizes(), self.strides()), self.element_size());
  g.order();
  // The bits of 16-bit floats survive the conversion to float32, and those of integers survive in
  // their own dtype. A narrower result is converted from the value read.
  const ScalarType from = self.dtype();
  GeneratedPointwise call;
  call.name = "copy_";
  call.body = &kCopy;
  call.device = out.device();
  call.shape = g.shape;
  call.numel = out.numel();
  call.compute = item_size(from) == 2 && is_floating(from) ? ScalarType::Float32 : from;
  call.out = {&out, g.strides[0].data(), "out"};
  if (self.is_cpu())
    call.numbers[call.number_count++] = {"self", aten::ops::_local_scalar_dense::base(self)};
  else
    call.inputs[call.input_count++] = {&self, g.strides[1].data(), "self"};
  return backend->pointwise(call);
}

}  // namespace treadle
