// Generated pointwise kernels. A work-item does `per` consecutive elements of the output, row by
// row; on a CPU that is a loop which the compiler turns into vectors, on a GPU it is one element.
//
// A program is kept by the call's expression, dtypes, number of dimensions, which names are
// operands (the same operator may be given a number in place of one), and how each moves along the
// last dimension: 'c' from element to element, 's' not at all, 'g' by a stride.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "generated.h"
#include "launch.h"
#include "source.h"

namespace treadle_opencl {

namespace plugin = treadle::plugin;

namespace {

constexpr size_t kMaxGeometry = 768;  // bytes; a kernel's arguments are 1024 everywhere

// Operand 0 is the output.
const treadle_operand& operand(const treadle_pointwise_call& call, int32_t i) {
  return i == 0 ? call.out : call.inputs[i - 1];
}

char step_of(const treadle_pointwise_call& call, const treadle_operand& o) {
  const int64_t stride = o.strides[call.dims - 1];
  if (stride == static_cast<int64_t>(plugin::item_size(static_cast<plugin::DType>(o.dtype))))
    return 'c';
  return stride == 0 ? 's' : 'g';
}

std::string key_of(const treadle_pointwise_call& call) {
  std::string key = "pointwise " + std::to_string(reinterpret_cast<uintptr_t>(call.key)) + ' ' +
                    std::to_string(call.compute) + ' ' + std::to_string(call.dims);
  for (int32_t i = 0; i <= call.input_count; ++i) {
    const treadle_operand& o = operand(call, i);
    key += ' ' + std::to_string(o.dtype) + step_of(call, o) + o.name;
  }
  return key;
}

std::string source_of(const treadle_pointwise_call& call, treadle_dtype compute, bool fails) {
  const Dialect dialect;
  const int32_t count = call.input_count + 1;
  const std::string n = std::to_string(count), d = std::to_string(call.dims);
  std::string text = prelude(compute);
  text += "typedef struct { long shape[" + d + "]; long strides[" + n + "][" + d +
          "]; } geometry;\nkernel void pointwise(const geometry g, const long total, "
          "const long per";
  for (int32_t i = 0; i < count; ++i) {
    const std::string k = std::to_string(i);
    text += ", tr_bytes m" + k + ", const long o" + k;
  }
  for (int32_t i = 0; i < call.number_count; ++i)
    text += ", const T " + dialect.variable(call.number_names[i]);
  if (fails) text += ", global long* fault";
  text +=
      ") {\n  long at = (long)get_global_id(0) * per;\n  const long end = min(at + per, total);\n"
      "  const long inner = g.shape[" +
      d +
      " - 1];\n  while (at < end) {\n"
      "    long row = at / inner;\n    const long column = at - row * inner;\n";
  for (int32_t i = 0; i < count; ++i) {
    const std::string k = std::to_string(i);
    text += "    tr_bytes p" + k + " = m" + k + " + o" + k + " + column * g.strides[" + k + "][" +
            d + " - 1];\n";
  }
  if (call.dims > 1) {
    text += "    for (int d = " + d +
            " - 2; d >= 0; --d) {\n      const long i = row % g.shape[d];\n"
            "      row /= g.shape[d];\n";
    for (int32_t i = 0; i < count; ++i) {
      const std::string k = std::to_string(i);
      text += "      p" + k + " += i * g.strides[" + k + "][d];\n";
    }
    text += "    }\n";
  }
  text += "    const long run = min(inner - column, end - at);\n";
  // Inputs that stay the same along the row are read once.
  std::string loads;
  for (int32_t i = 1; i < count; ++i) {
    const treadle_operand& o = call.inputs[i - 1];
    const std::string k = std::to_string(i), type = "global const " + storage_type(o.dtype) + "*";
    const char step = step_of(call, o);
    const std::string element =
        step == 'c'   ? "((" + type + ")p" + k + ")[j]"
        : step == 's' ? "*((" + type + ")p" + k + ")"
                      : "*((" + type + ")(p" + k + " + j * g.strides[" + k + "][" + d + " - 1]))";
    const std::string load = "const T " + dialect.variable(o.name) + " = " +
                             converted("(" + element + ")", o.dtype, compute) + ";\n";
    (step == 's' ? text : loads) += (step == 's' ? "    " : "      ") + load;
  }
  // Elements of the output and the inputs are the same ones or apart: no step depends on another.
  text += "#pragma clang loop vectorize(assume_safety)\n    for (long j = 0; j < run; ++j) {\n";
  text += loads;
  const plugin::ExpressionText value = plugin::expression_text(call.body, compute, dialect);
  const treadle_dtype to = call.out.dtype;
  const std::string type = "global " + storage_type(to) + "*";
  text +=
      "      " +
      (step_of(call, call.out) == 'c' ? "((" + type + ")p0)[j]"
                                      : "*((" + type + ")(p0 + j * g.strides[0][" + d + " - 1]))") +
      " = " + (value.truth ? converted_truth(value.text, to) : converted(value.text, compute, to)) +
      ";\n    }\n    at += run;\n  }\n}\n";
  return text;
}

void add_number(Launch& launch, const treadle_value& value, treadle_dtype compute) {
  const plugin::Number number = plugin::detail::Convert<plugin::Number>::read(value);
  plugin::visit_all_dtypes(static_cast<plugin::DType>(compute), [&](auto type) {
    using T = typename decltype(type)::type;
    const T converted = number.to<T>();
    launch.bytes(&converted, sizeof converted);
  });
}

[[noreturn]] void fail_divided(int64_t marked) {
  static constexpr const char* kNames[] = {"", "trunc_divide", "floor_divide", "fmod", "remainder"};
  plugin::fail(plugin::ErrorKind::Runtime, kNames[marked], ": expected a non-zero divisor, got 0");
}

// An operand that is a tensor.
treadle_operand operand_of(const plugin::Tensor& t, const std::vector<int64_t>& strides,
                           const char* name) {
  const auto size = static_cast<int64_t>(plugin::item_size(t.dtype()));
  return {t.storage(), t.storage_offset() * size, strides.data(),
          static_cast<treadle_dtype>(t.dtype()), name};
}

}  // namespace

bool run_pointwise(Device& device, const treadle_pointwise_call& call) {
  const treadle_dtype compute = plugin::compute_dtype(call.compute);
  const size_t words = static_cast<size_t>(call.dims) * static_cast<size_t>(call.input_count + 2);
  if (words * sizeof(int64_t) > kMaxGeometry) return false;
  bool fails = false;
  for (const std::string& name : plugin::functions_of(call.body)) {
    if (!has_function(name, compute)) return false;
    fails = fails || can_fail(name, compute);
  }

  std::vector<int64_t> geometry(call.shape, call.shape + call.dims);
  for (int32_t i = 0; i <= call.input_count; ++i) {
    const int64_t* strides = operand(call, i).strides;
    geometry.insert(geometry.end(), strides, strides + call.dims);
  }
  const int64_t per = Launch::per_item(device, call.numel, 4096);
  Launch launch(device, device.kernel(key_of(call), "pointwise",
                                      [&] { return source_of(call, compute, fails); }));
  launch.bytes(geometry.data(), geometry.size() * sizeof(int64_t));
  launch.scalar<int64_t>(call.numel).scalar<int64_t>(per);
  for (int32_t i = 0; i <= call.input_count; ++i)
    launch.buffer(operand(call, i).storage).scalar<int64_t>(operand(call, i).offset);
  for (int32_t i = 0; i < call.number_count; ++i) add_number(launch, call.numbers[i], compute);
  if (fails) launch.buffer(device.fault());
  launch.over((call.numel + per - 1) / per);
  if (fails) {
    const int64_t marked = device.take_fault().mark;
    if (marked != 0) fail_divided(marked);
  }
  return true;
}

namespace {

// Dimensions of more than one element, those that follow each other in memory in every operand
// being one; strides in bytes.
struct Shape {
  std::vector<int64_t> sizes;
  std::vector<std::vector<int64_t>> strides;

  explicit Shape(std::initializer_list<const plugin::Tensor*> tensors) : strides(tensors.size()) {
    const plugin::Tensor& first = **tensors.begin();
    for (int64_t d = 0; d < first.dim(); ++d) add(tensors, d, first.size(d));
    if (!sizes.empty()) return;
    sizes = {1};
    for (size_t i = 0; i < strides.size(); ++i) strides[i] = {size_of(*tensors.begin()[i])};
  }

 private:
  static int64_t size_of(const plugin::Tensor& t) {
    return static_cast<int64_t>(plugin::item_size(t.dtype()));
  }
  void add(std::initializer_list<const plugin::Tensor*> tensors, int64_t d, int64_t size) {
    if (size == 1) return;
    bool follows = !sizes.empty();
    for (size_t i = 0; i < strides.size(); ++i) {
      const plugin::Tensor& t = *tensors.begin()[i];
      follows = follows && strides[i].back() == t.stride(d) * size_of(t) * size;
    }
    if (follows)
      sizes.back() *= size;
    else
      sizes.push_back(size);
    for (size_t i = 0; i < strides.size(); ++i) {
      const plugin::Tensor& t = *tensors.begin()[i];
      const int64_t stride = t.stride(d) * size_of(t);
      if (follows)
        strides[i].back() = stride;
      else
        strides[i].push_back(stride);
    }
  }
};

// out = the operand or number "self".
treadle_pointwise_call assignment(const char* name, const plugin::Tensor& out, const Shape& shape) {
  static const treadle_node self = {TREADLE_NODE_NAME, 0, {}, "self", 0, 0};
  treadle_pointwise_call call{};
  call.size = sizeof call;
  call.dims = static_cast<int32_t>(shape.sizes.size());
  call.name = name;
  call.key = name;
  call.body = {&self, 1};
  call.device = out.device();
  call.compute = static_cast<treadle_dtype>(out.dtype());
  call.shape = shape.sizes.data();
  call.numel = out.numel();
  call.out = operand_of(out, shape.strides[0], "out");
  return call;
}
void run(const treadle_pointwise_call& call, const plugin::Tensor& out) {
  plugin::check(run_pointwise(device_of(out), call), plugin::ErrorKind::Runtime,
                "opencl: expected a tensor of fewer dimensions, got shape ", out.sizes());
}

}  // namespace

void copy_elements(const plugin::Tensor& from, const plugin::Tensor& to) {
  if (to.numel() == 0) return;
  const Shape shape({&to, &from});
  treadle_pointwise_call call = assignment("copy", to, shape);
  const treadle_operand input = operand_of(from, shape.strides[1], "self");
  call.input_count = 1;
  call.inputs = &input;
  run(call, to);
}
void fill(const plugin::Tensor& tensor, const plugin::Number& value) {
  const Shape shape({&tensor});
  treadle_pointwise_call call = assignment("fill", tensor, shape);
  plugin::detail::Nothing nothing;
  const treadle_value number = plugin::detail::Convert<plugin::Number>::write(value, nothing);
  const char* const names[] = {"self"};
  call.number_names = names;
  call.numbers = &number;
  call.number_count = 1;
  run(call, tensor);
}
plugin::Tensor packed_as(const plugin::Tensor& tensor, plugin::DType dtype) {
  if (tensor.is_contiguous() && tensor.dtype() == dtype) return tensor;
  plugin::Tensor copy = plugin::empty(tensor.sizes(), dtype, tensor.device());
  copy_elements(tensor, copy);
  return copy;
}
plugin::Tensor packed(const plugin::Tensor& tensor) { return packed_as(tensor, tensor.dtype()); }

}  // namespace treadle_opencl
