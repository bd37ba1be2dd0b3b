// Pointwise calls on a device.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/jit/pointwise.h"

#include <algorithm>

#include "aten/backend/cuda/backend.h"
#include "aten/backend/cuda/device_guard.h"
#include "aten/backend/cuda/jit/expression.h"
#include "aten/backend/cuda/jit/generated.h"
#include "aten/backend/cuda/jit/geometry.h"
#include "core/base/error.h"

namespace treadle::cuda {
namespace {

constexpr int64_t kThreads = GeneratedKernel::kThreads;

const GeneratedOperand& operand(const GeneratedPointwise& call, size_t k) {
  return k == 0 ? call.out : call.inputs[k - 1];
}

uintptr_t address_of(const Tensor& t) { return reinterpret_cast<uintptr_t>(t.data()); }

// Whether all operands traverse memory like the output, or stand still.
bool is_contiguous(const GeneratedPointwise& call, PointwisePlan& plan) {
  if (call.numel != 1 && call.shape.size() != 1) return false;
  for (size_t k = 0; k < plan.count; ++k) {
    const GeneratedOperand& o = operand(call, k);
    const int64_t stride = call.numel == 1 ? o.tensor->element_size() : o.strides[0];
    plan.operands[k].single = k != 0 && stride == 0;
    if (stride != o.tensor->element_size() && !plan.operands[k].single) return false;
  }
  return true;
}

// The number of elements in 16 bytes of the widest operand, if all operands are aligned for that.
int pack_of(const GeneratedPointwise& call, const PointwisePlan& plan) {
  int64_t widest = 1;
  for (size_t k = 0; k < plan.count; ++k)
    if (!plan.operands[k].single) widest = std::max(widest, item_size(plan.operands[k].dtype));
  const int64_t pack = std::max<int64_t>(1, 16 / widest);
  for (size_t k = 0; k < plan.count; ++k) {
    if (plan.operands[k].single) continue;
    const int64_t bytes = std::min<int64_t>(16, pack * item_size(plan.operands[k].dtype));
    if (address_of(*operand(call, k).tensor) % static_cast<uintptr_t>(bytes) != 0) return 1;
  }
  return static_cast<int>(pack);
}

KernelKey key_of(const GeneratedPointwise& call, const PointwisePlan& plan) {
  KernelKey key;
  key.add('p');
  key.add(call.body);
  key.add(plan.compute);
  key.add(static_cast<char>(plan.contiguous << 1 | plan.narrow));
  key.add(static_cast<char>(plan.dims));
  key.add(static_cast<char>(plan.pack));
  key.add(static_cast<char>(plan.times));
  for (size_t k = 0; k < plan.count; ++k) {
    key.add(plan.operands[k].dtype);
    key.add(plan.operands[k].single);
    // The same operator may receive a number in place of a tensor.
    key.add(operand(call, k).name);
  }
  for (size_t i = 0; i < call.number_count; ++i) key.add(call.numbers[i].name);
  return key;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& p : parts) text += (text.empty() ? "" : ", ") + p;
  return text;
}

}  // namespace

PointwisePlan plan_pointwise(const GeneratedPointwise& call, int processors) {
  PointwisePlan plan;
  plan.expression = call.body;
  plan.compute = call.compute;
  plan.numbers = call.number_count;
  const int64_t* strides[kMaxGeneratedOperands + 1];
  for (size_t k = 0; k <= call.input_count; ++k) {
    const GeneratedOperand& o = operand(call, k);
    plan.operands[plan.count++] = {o.tensor->dtype(), false};
    strides[k] = o.strides;
  }
  size_t named = 0;
  for (size_t k = 0; k < call.input_count; ++k) plan.names[named++] = call.inputs[k].name;
  for (size_t i = 0; i < call.number_count; ++i) plan.names[named++] = call.numbers[i].name;
  plan.narrow = is_narrow(call.numel, call.shape, strides, call.input_count + 1);
  plan.contiguous = is_contiguous(call, plan);
  if (plan.contiguous) {
    plan.pack = pack_of(call, plan);
    plan.dims = 1;
  } else {
    for (size_t k = 0; k < plan.count; ++k) plan.operands[k].single = false;
    plan.dims = static_cast<int>(call.shape.size());
  }
  // Two blocks for each processor before a thread takes more than one pack.
  if (call.numel < 2 * processors * kThreads * plan.pack * plan.times) plan.times = 1;
  return plan;
}

std::string pointwise_source(const PointwisePlan& plan) {
  const std::string compute = type_name(plan.compute), out = type_name(plan.operands[0].dtype);
  const std::string index = plan.narrow ? "unsigned" : "unsigned long long";
  const std::string times = std::to_string(plan.times), pack = std::to_string(plan.pack);
  const std::string numbers = "Numbers<" + compute + ", " + std::to_string(plan.numbers) + ">";
  std::vector<std::string> parameters = {"const " + index + " total"}, inputs;
  if (plan.contiguous) {
    parameters.push_back(out + "* out");
  } else {
    parameters.push_back("const Geometry<" + index + ", " + std::to_string(plan.dims) + ", " +
                         std::to_string(plan.count) + "> g");
    parameters.push_back("char* out");
  }
  for (size_t k = 1; k < plan.count; ++k) {
    const std::string type = type_name(plan.operands[k].dtype), name = "in" + std::to_string(k);
    if (plan.contiguous) {
      parameters.push_back("const " + type + "* " + name);
      inputs.push_back("Held<" + type + ", " + (plan.operands[k].single ? "true" : "false") + ", " +
                       pack + ", " + times + ">{" + name + "}");
    } else {
      parameters.push_back("const char* " + name);
      inputs.push_back("Gathered<" + type + ", " + times + ">{" + name + "}");
    }
  }
  if (plan.numbers) parameters.push_back("const " + numbers + " numbers");
  std::string text = "#include \"aten/backend/cuda/device/pointwise.cuh\"\n\n";
  text += "namespace treadle::simd::N_CUDA {\nstruct Function {\n";
  text += function_text("eval", {plan.names, plan.names + (plan.count - 1) + plan.numbers},
                        *plan.expression);
  text += "};\n}  // namespace treadle::simd::N_CUDA\n\nusing namespace treadle::cuda;\n";
  text += "using treadle::simd::N_CUDA::Function;\n\n";
  text += "extern \"C\" __global__ void __launch_bounds__(" + std::to_string(kThreads) +
          ") pointwise(" + joined(parameters) + ") {\n";
  if (!plan.numbers) text += "  const " + numbers + " numbers{};\n";
  std::vector<std::string> arguments = {"total", "out", "numbers"};
  if (!plan.contiguous) arguments.insert(arguments.begin(), "g");
  arguments.insert(arguments.end(), inputs.begin(), inputs.end());
  text += plan.contiguous ? "  contiguous<Function, " + pack + ", " + times
                          : "  strided<Function, " + out + ", " + times;
  return text + ">(" + joined(arguments) + ");\n}\n";
}

int64_t pointwise_blocks(const PointwisePlan& plan, int64_t numel) {
  const int64_t per_block = kThreads * plan.pack * plan.times;
  return (numel + per_block - 1) / per_block;
}

void add_pointwise_arguments(const PointwisePlan& plan, const GeneratedPointwise& call,
                             Arguments& arguments) {
  if (plan.narrow)
    arguments.add(static_cast<uint32_t>(call.numel));
  else
    arguments.add(static_cast<uint64_t>(call.numel));
  if (!plan.contiguous) {
    StructBytes g;
    for (const int64_t size : call.shape) g.add_divisor(size, plan.narrow);
    for (size_t k = 0; k < plan.count; ++k) {
      for (size_t d = 0; d < call.shape.size(); ++d) {
        if (plan.narrow)
          g.add(static_cast<int32_t>(operand(call, k).strides[d]));
        else
          g.add(operand(call, k).strides[d]);
      }
    }
    arguments.add_bytes(g.bytes().data(), g.bytes().size(), plan.narrow ? 4 : 8);
  }
  for (size_t k = 0; k < plan.count; ++k) arguments.add(operand(call, k).tensor->data());
  if (call.number_count == 0) return;
  StructBytes numbers;
  for (size_t i = 0; i < call.number_count; ++i)
    numbers.add_number(call.numbers[i].value, plan.compute);
  arguments.add_bytes(numbers.bytes().data(), numbers.bytes().size(), 16);
}

bool run_pointwise(const GeneratedPointwise& call) {
  if (call.shape.size() > kMaxPointwiseDims) return false;
  const int device = call.device.index;
  const DeviceGuard guard(device);
  const PointwisePlan plan = plan_pointwise(call, device_facts(device).processors);
  GeneratedKernel& kernel = GeneratedKernel::of(key_of(call, plan), device, "pointwise",
                                                [&] { return pointwise_source(plan); });
  const int64_t blocks = pointwise_blocks(plan, call.numel);
  check<ErrorKind::Runtime>(blocks < (int64_t{1} << 31), OpName(call.name),
                            "expected at most 2^31 blocks of elements, got ", blocks);
  Arguments arguments;
  add_pointwise_arguments(plan, call, arguments);
  kernel.launch(device, dim3(static_cast<unsigned>(blocks)), arguments);
  return true;
}

}  // namespace treadle::cuda
