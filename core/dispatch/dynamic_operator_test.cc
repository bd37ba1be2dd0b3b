// Operators defined at run time: names, kernels by device, layers, and the checks of arguments and
// results.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/dispatch/dynamic_operator.h"

#include <gtest/gtest.h>

#include "core/dispatch/dispatcher.h"

namespace treadle {
namespace {

std::string error_of(auto&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

const KernelOrigin kHere{KernelSource::DeviceLayout, "a.cc", 7, ""};
const KernelOrigin kThere{KernelSource::DeviceLayout, "b.cc", 8, ""};

// Its context is the number it returns.
void give_number(void* context, const Operator&, Stack& stack) {
  stack.clear();
  stack.emplace_back(*static_cast<int64_t*>(context));
}
void give_first(void*, const Operator&, Stack& stack) { stack.resize(1); }

int64_t g_one = 1, g_two = 2;

Tensor on(Device device) { return empty_tensor({2}, ScalarType::Float32, device); }

TEST(DynamicOperator, IsKnownByItsNameUntilItIsTakenBack) {
  Dispatcher& d = Dispatcher::instance();
  DynamicOperator& op = DynamicOperator::define("t::known.v(Tensor x, int n=3) -> int", kHere);
  EXPECT_EQ(d.find("t::known.v"), &op);
  EXPECT_EQ(DynamicOperator::of(*d.find("t::known.v")), &op);
  EXPECT_STREQ(op.info().schema, "t::known.v(Tensor x, int n=3) -> int");
  EXPECT_EQ(error_of([] { DynamicOperator::define("t::known.v() -> ()", kThere); }),
            "define: expected a new name of an operator, got t::known.v at b.cc:8\n"
            "it is defined already at a.cc:7");
  op.set_kernel(DeviceType::CPU, {&give_number, &g_one}, kHere);
  EXPECT_NE(d.dump("t::known.v").find("cpu strided float32  device  a.cc:7"), std::string::npos);
  op.undefine();
  EXPECT_EQ(d.find("t::known.v"), nullptr);
  EXPECT_TRUE(d.check_invariants().empty());
  DynamicOperator::define("t::known.v() -> ()", kThere).undefine();
}

TEST(DynamicOperator, TheDeviceChoosesTheKernel) {
  DynamicOperator& op = DynamicOperator::define("t::device(Tensor x, Tensor? y) -> int", kHere);
  const auto call = [&](const Tensor& x, const Value& y = {}) {
    Stack stack{x, y};
    op.call_boxed(stack);
    return stack[0].as<int64_t>();
  };
  EXPECT_EQ(error_of([&] { call(on(kCPU)); }),
            "t::device: expected a kernel for the device cpu, got none\n"
            "kernels exist for: no device");
  op.set_kernel(DeviceType::CPU, {&give_number, &g_one}, kHere);
  EXPECT_EQ(call(on(kCPU)), 1);
  EXPECT_EQ(error_of([&] { call(on(kMeta)); }),
            "t::device: expected a kernel for the device meta, got none\nkernels exist for: cpu");
  op.set_default_kernel({&give_number, &g_two}, false, kHere);
  EXPECT_EQ(call(on(kMeta)), 2);
  EXPECT_EQ(call(on(kCPU)), 1);
  EXPECT_EQ(call(on(kCPU), on(kMeta)), 2);
  EXPECT_EQ(error_of([&] {
              op.set_kernel(DeviceType::CPU, {&give_number, &g_two}, kThere);
            }),
            "t::device: expected one kernel for the device cpu, got a second at b.cc:8\n"
            "the first is at a.cc:7");
  EXPECT_EQ(error_of([&] {
              op.set_default_kernel({&give_number, &g_two}, true, kThere);
            }),
            "t::device: expected one kernel for all devices, got a second at b.cc:8\n"
            "the first is at a.cc:7");
  op.clear_kernel(DeviceType::CPU);
  EXPECT_EQ(call(on(kCPU)), 2);
  op.set_kernel(DeviceType::CPU, {&give_number, &g_one}, kThere);
  EXPECT_EQ(call(on(kCPU)), 1);
}

TEST(DynamicOperator, ArgumentsAndResultsAreOfTheSchema) {
  DynamicOperator& op =
      DynamicOperator::define("t::checked(Tensor x, int[2] n, float f) -> Tensor", kHere);
  op.set_kernel(DeviceType::CPU, {&give_number, &g_one}, kHere);
  const auto call = [&](Stack stack) { op.call_boxed(stack); };
  const Value::Ints two{1, 2}, three{1, 2, 3};
  EXPECT_EQ(error_of([&] { call({on(kCPU)}); }),
            "t::checked: expected 3 arguments, got 1 for\n"
            "  t::checked(Tensor x, int[2] n, float f) -> Tensor");
  EXPECT_EQ(error_of([&] {
              call({Value(), two, 1.0});
            }),
            "t::checked: expected x to be Tensor, got None");
  EXPECT_EQ(error_of([&] {
              call({on(kCPU), three, 1.0});
            }),
            "t::checked: expected n to be int[2], got int[] of length 3");
  EXPECT_EQ(error_of([&] {
              call({on(kCPU), two, int64_t{1}});
            }),
            "t::checked: expected f to be float, got int");
  EXPECT_EQ(error_of([&] {
              call({on(kCPU), two, 1.0});
            }),
            "t::checked: expected the kernel to return Tensor as result 0, got int\n"
            "  t::checked(Tensor x, int[2] n, float f) -> Tensor");
  DynamicOperator& none = DynamicOperator::define("t::none(Tensor x) -> ()", kHere);
  none.set_kernel(DeviceType::CPU, {&give_first, nullptr}, kHere);
  EXPECT_EQ(error_of([&] {
              Stack stack{on(kCPU)};
              none.call_boxed(stack);
            }),
            "t::none: expected the kernel to return 0 results, got 1\n  t::none(Tensor x) -> ()");
}

TEST(DynamicOperator, WhatIsWrittenHasANewVersion) {
  DynamicOperator& op =
      DynamicOperator::define("t::write_(Tensor(a!) x, Tensor y) -> Tensor(a!)", kHere);
  op.set_kernel(DeviceType::CPU, {&give_first, nullptr}, kHere);
  const Tensor x = on(kCPU), y = on(kCPU);
  const uint32_t before = x.version(), other = y.version();
  Stack stack{x, y};
  op.call_boxed(stack);
  EXPECT_EQ(x.version(), before + 1);
  EXPECT_EQ(y.version(), other);
  EXPECT_TRUE(stack[0].as<Tensor>().is_same(x));
  op.clear_kernel(DeviceType::CPU);
  op.set_kernel(DeviceType::CPU,
                {[](void*, const Operator&, Stack& s) { s.assign(1, Value(on(kCPU))); }, nullptr},
                kHere);
  Stack wrong{x, y};
  EXPECT_EQ(error_of([&] { op.call_boxed(wrong); }),
            "t::write_: expected the kernel to return the tensor it was given to write, got "
            "another one\n  t::write_(Tensor(a!) x, Tensor y) -> Tensor(a!)");
}

TEST(DynamicOperator, SchemasWithAnErrorAreShown) {
  EXPECT_EQ(error_of([] { DynamicOperator::define("t::bad(Tensor x -> Tensor", kHere); }),
            "define: expected the schema of an operator, got one with an error:\n"
            "<string>:1:16: error: expected ',' or ')' after argument 'x', got '->'; close the "
            "arguments with ')'\n"
            "t::bad(Tensor x -> Tensor\n"
            "               ^");
  EXPECT_EQ(error_of([] { DynamicOperator::define("bad(Tensor x) -> Tensor", kHere); }),
            "define: expected a schema that names a namespace, as my_ns::bad, got\n"
            "  bad(Tensor x) -> Tensor");
  EXPECT_EQ(error_of([] { DynamicOperator::define("t::bad(Storage s) -> Tensor", kHere); }),
            "define: expected types that a call at run time can carry, got Storage for argument "
            "'s' of\n  t::bad(Storage s) -> Tensor");
}

TEST(DynamicOperator, LayersAreCalledAsForAnyOperator) {
  static std::string log;
  DynamicOperator& op = DynamicOperator::define("t::layered(Tensor x) -> int", kHere);
  op.set_kernel(DeviceType::CPU,
                {[](void*, const Operator&, Stack& s) {
                   log += "kernel ";
                   s.assign(1, Value(int64_t{0}));
                 },
                 nullptr},
                kHere);
  op.set_layer_kernel(Layer::Autograd,
                      {[](void*, const Operator& self, Stack& s) {
                         log += "autograd ";
                         DynamicOperator::of(self)->call_kernel(s);
                       },
                       nullptr},
                      kHere);
  op.set_layer_kernel(Layer::Autocast,
                      {[](void*, const Operator& self, Stack& s) {
                         log += "autocast ";
                         const ExcludeLayers below(Layer::Autocast);
                         self.call_boxed(s);
                       },
                       nullptr},
                      kHere);
  const auto call = [&] {
    log.clear();
    Stack stack{on(kCPU)};
    op.call_boxed(stack);
    return log;
  };
  EXPECT_EQ(call(), "autograd kernel ");
  {
    const IncludeLayer autocast(Layer::Autocast);
    EXPECT_EQ(call(), "autocast autograd kernel ");
  }
  const ExcludeLayers below(Layer::Autograd);
  EXPECT_EQ(call(), "kernel ");
}

}  // namespace
}  // namespace treadle
