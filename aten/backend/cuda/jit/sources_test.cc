// Every pointwise and reduce operator of the model, in every declared dtype, gives source that the
// compiler of generated kernels accepts. Calls run on a device whose backend makes the kernels and
// then declines. So the compiled kernels are those that the engine requests.
//
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "aten/backend/cuda/jit/compiler.h"
#include "aten/backend/cuda/jit/pointwise.h"
#include "aten/backend/cuda/jit/reduce.h"
#include "aten/engine/backends/fallback.h"
#include "core/device/testing_backend.h"
#include "core/dispatch/dispatcher.h"
#include "core/schema/function_schema.h"

namespace treadle::cuda {
namespace {

std::set<std::string>& sources() {
  static std::set<std::string> sources;
  return sources;
}

class WritingBackend final : public TestingBackend {
 public:
  WritingBackend() : TestingBackend("writing_device", false, false, true) {}
  bool pointwise(const GeneratedPointwise& call) override {
    sources().insert(pointwise_source(plan_pointwise(call, 1)));
    return false;
  }
  bool reduce(const GeneratedReduce& call) override {
    const ReducePlan plan = plan_reduce(call);
    for (const FoldStage stage : {FoldStage::Whole, FoldStage::Pieces, FoldStage::Join})
      sources().insert(reduce_source(plan, stage));
    return false;
  }
};

Device writing_device() {
  static const DeviceType type = [] {
    const DeviceType t = register_backend(std::make_unique<WritingBackend>());
    Dispatcher::instance().register_device_fallback(
        t, boxed_kernel<&cpu_fallback>, KernelOrigin{KernelSource::Fallback, "a test", 0, ""});
    return t;
  }();
  return {type, 0};
}

// A value for an argument: tensors of ones of the dtype, numbers one.
Value value_for(const schema::Argument& a, ScalarType dtype, IntList sizes, bool strided) {
  if (a.type.is_tensor()) {
    Tensor t = empty_tensor(sizes, dtype, writing_device());
    const Tensor ones = empty_cpu(sizes, dtype);
    std::memset(ones.data(), dtype >= ScalarType::Float16 ? 0 : 1,
                static_cast<size_t>(ones.nbytes()));
    move_bytes({t.storage()->data(), 0, t.device()}, {ones.storage()->data(), 0, kCPU},
               static_cast<size_t>(t.nbytes()), false);
    if (strided && t.dim() == 2) t = alias_with_geometry(t, {sizes[1], sizes[0]}, {1, sizes[1]}, 0);
    return Value(t);
  }
  if (a.type.list) return Value(Value::Ints{0});
  switch (a.type.base) {
    case schema::BaseType::Int:
      return Value(int64_t{0});
    case schema::BaseType::Bool:
      return Value(false);
    case schema::BaseType::Float:
      return Value(1.0);
    case schema::BaseType::Scalar:
      return Value(Scalar(int64_t{1}));
    default:
      return Value();
  }
}

// Whether the call got as far as its operator's contract allows. The refusals do not matter here.
void call(const Operator& op, ScalarType dtype, bool strided) {
  Stack stack;
  bool first = true;
  for (const schema::Argument& a : op.schema().arguments) {
    const bool turned = strided && first && a.type.is_tensor();
    first = first && !a.type.is_tensor();
    stack.push_back(value_for(a, dtype, turned ? IntList{3, 2} : IntList{2, 3}, turned));
  }
  try {
    op.call_boxed(stack);
  } catch (const Error& e) {
    ASSERT_NE(e.kind(), ErrorKind::Internal) << op.info().name << ": " << e.what();
  }
}

// Many sources as one program: reading the headers is most of a compilation.
std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string n = std::to_string(i);
    for (const char* name : {"Function", "pointwise", "fold_kernel"})
      text += std::string("#define ") + name + " " + name + "_" + n + "\n";
    text += parts[i] + "#undef Function\n#undef pointwise\n#undef fold_kernel\n";
  }
  return text;
}

TEST(Sources, OfEveryOperatorAndDtypeCompile) {
  std::set<std::string> covered, operators;
  for (const Operator* op : Dispatcher::instance().operators()) {
    const OperatorKind kind = op->entry().kind;
    if (kind != OperatorKind::Pointwise && kind != OperatorKind::Reduce) continue;
    if (op->info().form != Form::Functional) continue;
    operators.insert(op->info().name);
    const size_t before = sources().size();
    for (int t = 0; t < kNumScalarTypes; ++t) {
      call(*op, static_cast<ScalarType>(t), false);
    }
    call(*op, ScalarType::Float32, true);
    if (sources().size() > before) covered.insert(op->info().name);
  }
  // Operators that share an expression with an earlier one give no source of their own.
  EXPECT_GT(operators.size(), 200u);
  EXPECT_GT(covered.size(), operators.size() / 2);

  const std::vector<std::string> all(sources().begin(), sources().end());
  EXPECT_GT(all.size(), 1500u);
  constexpr size_t kBatch = 64;
  for (size_t at = 0; at < all.size(); at += kBatch) {
    const std::vector<std::string> part(
        all.begin() + static_cast<int64_t>(at),
        all.begin() + static_cast<int64_t>(std::min(at + kBatch, all.size())));
    try {
      EXPECT_GT(compile_anew(joined(part), 90).size(), 0u);
    } catch (const Error& batch) {
      for (const std::string& source : part) {
        try {
          compile_anew(source, 90);
        } catch (const Error& e) {
          ADD_FAILURE() << e.what() << "\n" << source;
        }
      }
    }
  }
}

}  // namespace
}  // namespace treadle::cuda
