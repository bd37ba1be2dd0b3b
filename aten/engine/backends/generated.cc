// Passes pointwise and reduce calls to backends that make kernels from expressions.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/backends/generated.h"

#include <algorithm>
#include <deque>

#include "aten/engine/loop_geometry.h"
#include "aten/ops/_local_scalar_dense.h"
#include "core/base/address_map.h"
#include "core/schema/function_schema.h"

namespace treadle {
namespace {

// The names of the arguments of a schema: of tensors, and of all others.
struct ArgumentNames {
  std::vector<std::string> tensors, numbers;
};

const ArgumentNames& names_of(const char* schema) {
  static auto* known = new AddressMap<ArgumentNames>;
  return known->ensure(schema, [&] {
    ArgumentNames names;
    for (const schema::Argument& a : schema::parse_schema(std::string_view(schema)).arguments)
      (a.type.is_tensor() ? names.tensors : names.numbers).push_back(a.name);
    return names;
  });
}

}  // namespace

std::string_view reduction_part(std::string_view text, std::string_view name) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find("; ", begin), text.size());
    const std::string_view piece = text.substr(begin, end - begin);
    if (piece.starts_with(name) && piece.substr(name.size()).starts_with(" = "))
      return piece.substr(name.size() + 3);
    begin = end + 2;
  }
  return {};
}

bool run_generated(const ExpressionSource& source, const Tensor& out, const DimVector& out_strides,
                   ArrayRef<const Tensor*> inputs, const DimVector* input_strides,
                   ArrayRef<Scalar> numbers, IntList shape, ScalarType compute) {
  Backend* const backend = backend_of(out.device().type);
  if (!backend || !backend->facts().generates) return false;
  const ArgumentNames& names = names_of(source.schema);
  GeneratedPointwise call;
  call.source = source;
  call.device = out.device();
  call.shape = shape;
  call.numel = out.numel();
  call.compute = compute;
  call.out = {&out, out_strides.data(), "out"};
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Tensor& t = *inputs[k];
    if (t.is_cpu())
      call.numbers[call.number_count++] = {names.tensors[k].c_str(),
                                           aten::ops::_local_scalar_dense::base(t)};
    else
      call.inputs[call.input_count++] = {&t, input_strides[k].data(), names.tensors[k].c_str()};
  }
  for (size_t k = 0; k < numbers.size(); ++k)
    call.numbers[call.number_count++] = {names.numbers[k].c_str(), numbers[k]};
  return backend->pointwise(call);
}

bool run_generated(const ExpressionSource& source, const ReduceCall& call, const Tensor& out,
                   const Tensor& in) {
  Backend* const backend = backend_of(out.device().type);
  return backend && backend->facts().generates && backend->reduce({source, call, out, in});
}

bool convert_generated(const Tensor& out, const Tensor& self) {
  static constexpr ExpressionSource kCopy{"copy_", "copy_(Tensor self) -> Tensor", "self"};
  LoopGeometry g(out.sizes());
  g.add(out.strides(), out.element_size());
  g.add(broadcast_strides(out.sizes(), self.sizes(), self.strides()), self.element_size());
  g.order();
  // The bits of 16-bit floats survive the conversion to float32, and those of integers survive in
  // their own dtype. A narrower result is converted from the value read.
  const ScalarType from = self.dtype();
  const ScalarType compute = item_size(from) == 2 && is_floating(from) ? ScalarType::Float32 : from;
  const Tensor* const inputs[] = {&self};
  return run_generated(kCopy, out, g.strides[0], {inputs, 1}, &g.strides[1], {}, g.shape, compute);
}

}  // namespace treadle
