// Operators, layers and kernel tables: precedence, rejected registrations, fallbacks,
// introspection.
//
// The operators are written by hand, in the form that the generator gives them.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/dispatch/dispatcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>

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

using Binary = Tensor(const Tensor&, const Tensor&, const Scalar&);

// The events, in order.
std::vector<std::string> g_log;

constexpr uint32_t kFloatBit = 1u << static_cast<int>(ScalarType::Float32);
constexpr uint32_t kDoubleBit = 1u << static_cast<int>(ScalarType::Float64);

// An operator whose names live as long as the program, as those of generated ones do.
struct TestOperator {
  explicit TestOperator(const std::string& base, OperatorKind kind = OperatorKind::Kernel,
                        std::vector<DtypeRow> dtypes = {{"cpu", kFloatBit}}, int line = 10)
      : base(base),
        name("aten::" + base + ".Tensor"),
        schema(name + "(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"),
        line(line),
        dtypes(std::move(dtypes)),
        entry{.op = &op,
              .kind = kind,
              .file = "native_functions.yaml",
              .line_place = &this->line,
              .dtypes = this->dtypes},
        info{.name = name.c_str(),
             .base_name = this->base.c_str(),
             .schema = schema.c_str(),
             .entry = &entry,
             .form = Form::Functional},
        op(&info, &table, &call_boxed, 0) {}
  static void call_boxed(const Operator&, Stack&) {}

  std::string base, name, schema;
  int line;
  std::vector<DtypeRow> dtypes;
  EntryInfo entry;
  OperatorInfo info;
  KernelTable table;
  Operator op;
};

TestOperator& added(const std::string& base, OperatorKind kind = OperatorKind::Kernel,
                    std::vector<DtypeRow> dtypes = {{"cpu", kFloatBit}}, int line = 10) {
  static std::deque<TestOperator> operators;
  TestOperator& op = operators.emplace_back(base, kind, std::move(dtypes), line);
  Dispatcher::instance().add_operator(op.op);
  return op;
}

using Kernels = std::array<void*, kMaxScalarTypes>;
int g_kernels[16];
void* kernel(int i) { return &g_kernels[i]; }

Kernels row_of(std::initializer_list<std::pair<ScalarType, int>> cells) {
  Kernels kernels{};
  for (const auto& [t, i] : cells) kernels[static_cast<size_t>(t)] = kernel(i);
  return kernels;
}

KernelOrigin place(KernelSource source, const char* file, int line) {
  return {source, file, line, "k"};
}

constexpr auto kFloat = ScalarType::Float32;
constexpr auto kDouble = ScalarType::Float64;

void* found(const TestOperator& op, ScalarType t = kFloat, Device device = kCPU) {
  return op.op.table().find(device, Layout::Strided, t);
}

TEST(Dispatcher, NamesAreUniqueAndNearOnesAreSuggested) {
  TestOperator& op = added("lookup");
  Dispatcher& d = Dispatcher::instance();
  EXPECT_EQ(d.find("aten::lookup.Tensor"), &op.op);
  EXPECT_EQ(d.find("aten::lookup"), nullptr);
  static TestOperator again("lookup", OperatorKind::Kernel, {}, 99);
  EXPECT_EQ(error_of([&] { d.add_operator(again.op); }),
            "expected a new operator name, got aten::lookup.Tensor at native_functions.yaml:99\n"
            "it is defined already at native_functions.yaml:10");
  EXPECT_EQ(error_of([&] { d.at("aten::lokup.Tensor"); }),
            "expected the name of an operator, got 'aten::lokup.Tensor'; did you mean "
            "'aten::lookup.Tensor'?");
  const auto all = d.operators();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](auto* a, auto* b) {
    return std::string_view(a->info().name) < b->info().name;
  }));
}

TEST(Dispatcher, TheBestKernelWinsInEveryOrderOfRegistration) {
  struct Step {
    KernelSource source;
    Kernels kernels;
  };
  const std::vector<Step> steps = {
      {KernelSource::Exact, row_of({{kFloat, 1}})},
      {KernelSource::DeviceLayout, row_of({{kFloat, 2}, {kDouble, 2}})},
      {KernelSource::Composite, row_of({{kFloat, 3}, {kDouble, 3}, {ScalarType::Int64, 3}})},
      {KernelSource::Generated, row_of({{ScalarType::Int32, 4}, {kDouble, 4}})}};
  std::vector<int> order(steps.size());
  std::iota(order.begin(), order.end(), 0);
  std::string first_dump;
  int round = 0;
  do {
    TestOperator& op = added("order" + std::to_string(round++));
    for (int i : order) {
      Dispatcher::instance().register_row(op.op, DeviceType::CPU, Layout::Strided, steps[i].kernels,
                                          place(steps[i].source, "a.cc", i + 1));
    }
    EXPECT_EQ(found(op), kernel(1));
    EXPECT_EQ(found(op, kDouble), kernel(2));
    EXPECT_EQ(found(op, ScalarType::Int64), kernel(3));
    EXPECT_EQ(found(op, ScalarType::Int32), kernel(4));
    std::string dump = Dispatcher::instance().dump(op.name);
    for (size_t at; (at = dump.find(op.name)) != std::string::npos;)
      dump.replace(at, op.name.size(), "NAME");
    if (first_dump.empty()) first_dump = dump;
    EXPECT_EQ(dump, first_dump);
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(first_dump,
            "NAME  cpu strided int32  generated  a.cc:4  k\n"
            "NAME  cpu strided int64  composite  a.cc:3  k\n"
            "NAME  cpu strided float32  exact  a.cc:1  k\n"
            "NAME  cpu strided float64  device  a.cc:2  k\n");
}

TEST(Dispatcher, DuplicatesAreRejectedWithBothPlaces) {
  TestOperator& op = added("twice");
  Dispatcher& d = Dispatcher::instance();
  d.register_row(op.op, DeviceType::CPU, Layout::Strided, row_of({{kFloat, 1}, {kDouble, 1}}),
                 place(KernelSource::DeviceLayout, "a.cc", 1));
  d.register_row(op.op, DeviceType::CPU, Layout::Strided, row_of({{kFloat, 2}}),
                 place(KernelSource::Exact, "b.cc", 2));
  EXPECT_EQ(error_of([&] {
              d.register_row(op.op, DeviceType::CPU, Layout::Strided,
                             row_of({{kFloat, 3}, {ScalarType::Int8, 3}}),
                             place(KernelSource::DeviceLayout, "c.cc", 3));
            }),
            "aten::twice.Tensor: expected one kernel for cpu, strided, float32, got a second at "
            "c.cc:3\nthe first is at a.cc:1");
  EXPECT_EQ(found(op), kernel(2));
  EXPECT_EQ(found(op, ScalarType::Int8), nullptr);  // nothing of a rejected registration stays
}

TEST(Dispatcher, WhatIsCompiledInGivesWayAndComesBack) {
  static KernelRow compiled;
  static const KernelOrigin compiled_place{KernelSource::Generated, "native_functions.yaml", 12,
                                           ""};
  compiled.kernels[static_cast<size_t>(kFloat)] = kernel(7);
  compiled.places[static_cast<size_t>(kFloat)] = &compiled_place;
  static TestOperator op("compiled");
  static KernelTable table(&compiled);
  static Operator with_row(&op.info, &table, &TestOperator::call_boxed, 0);
  op.entry.op = &with_row;
  Dispatcher& d = Dispatcher::instance();
  d.add_operator(with_row);
  EXPECT_EQ(table.find(kCPU, Layout::Strided, kFloat), kernel(7));
  d.register_row(with_row, DeviceType::CPU, Layout::Strided, row_of({{kFloat, 8}}),
                 place(KernelSource::DeviceLayout, "a.cc", 1));
  EXPECT_EQ(table.find(kCPU, Layout::Strided, kFloat), kernel(8));
  d.deregister(op.name, DeviceType::CPU, Layout::Strided);
  EXPECT_EQ(table.find(kCPU, Layout::Strided, kFloat), kernel(7));
  EXPECT_EQ(d.dump(op.name),
            "aten::compiled.Tensor  cpu strided float32  generated  native_functions.yaml:12\n");
  EXPECT_NE(error_of([&] { d.deregister(op.name, DeviceType::CPU, Layout::Strided); }), "no error");
}

void boxed_a(const Operator&, Stack& stack) {
  g_log.push_back("a");
  stack = {stack[0]};
}
void boxed_b(const Operator& op, Stack& stack) {
  g_log.push_back(std::string("b ") + op.info().base_name);
  stack = {stack[1]};
}
constexpr const BoxedKernel& kBoxedA = boxed_kernel<&boxed_a>;
constexpr const BoxedKernel& kBoxedB = boxed_kernel<&boxed_b>;

BoxedKernel::Function function_at(const TestOperator& op, Device device, ScalarType t,
                                  Layout layout = Layout::Strided) {
  const BoxedKernel* const kernel = find_boxed(op.op, device, layout, t);
  return kernel ? kernel->function : nullptr;
}
BoxedKernel::Function function_on(const TestOperator& op, Layer layer) {
  return op.op.layer_boxed(layer)->function;
}

TEST(Dispatcher, BoxedKernelsMustHaveTheSchema) {
  TestOperator& op = added("boxed");
  Dispatcher& d = Dispatcher::instance();
  const KernelOrigin at = place(KernelSource::Generated, "plugin.py", 4);
  EXPECT_EQ(error_of([&] {
              d.register_boxed(op.name, "boxed.Tensor(Tensor self, Tensor other) -> Tensor",
                               DeviceType::CPU, Layout::Strided, {}, kBoxedA, at);
            }),
            "aten::boxed.Tensor: expected a kernel for the operator's schema\n"
            "  boxed.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n"
            "got one, at plugin.py:4, for\n"
            "  boxed.Tensor(Tensor self, Tensor other) -> Tensor");
  EXPECT_NE(error_of([&] {
              d.register_boxed(op.name, "boxed(", DeviceType::CPU, Layout::Strided, {}, kBoxedA,
                               at);
            }).find("an error"),
            std::string::npos);
  // How it is written does not matter.
  d.register_boxed(op.name, "boxed.Tensor(Tensor self,Tensor other , *, Scalar alpha=1)->Tensor",
                   DeviceType::CUDA, Layout::Strided, {}, kBoxedA, at);
  d.register_boxed(op.name, op.schema, DeviceType::CUDA, Layout::Strided, {kDouble}, kBoxedB, at);
  const Device cuda{DeviceType::CUDA, 0};
  EXPECT_EQ(function_at(op, cuda, kFloat), kBoxedA.function);
  EXPECT_EQ(function_at(op, cuda, kDouble), kBoxedB.function);
  EXPECT_EQ(function_at(op, kCPU, kFloat), nullptr);
  d.deregister(op.name, DeviceType::CUDA, Layout::Strided);
  EXPECT_EQ(function_at(op, cuda, kFloat), nullptr);
  // A list that stands for no list.
  d.register_boxed(op.name, op.schema, DeviceType::CUDA, Layout::Strided, {kDouble}, kBoxedB, at);
  d.register_boxed(op.name, op.schema, DeviceType::CUDA, Layout::Strided, {kFloat, kDouble},
                   kBoxedA, place(KernelSource::DeviceLayout, "plugin.py", 5));
  EXPECT_EQ(function_at(op, cuda, kFloat), kBoxedA.function);
  EXPECT_EQ(function_at(op, cuda, kDouble), kBoxedB.function);
  EXPECT_EQ(function_at(op, cuda, ScalarType::Int64), nullptr);
  d.deregister(op.name, DeviceType::CUDA, Layout::Strided);
}

// Two kernels of one function, told apart by their contexts.
TEST(Dispatcher, ABoxedKernelGetsItsContextBack) {
  TestOperator& op = added("contexts");
  Dispatcher& d = Dispatcher::instance();
  static int first = 1, second = 2;
  const BoxedKernel::Function log = [](void* context, const Operator& called, Stack&) {
    g_log.push_back(str(called.info().base_name, " ", *static_cast<int*>(context)));
  };
  const KernelOrigin at = place(KernelSource::Generated, "plugin.py", 4);
  d.register_boxed(op.name, op.schema, DeviceType::CUDA, Layout::Strided, {kFloat}, {log, &first},
                   at);
  d.register_boxed(op.name, op.schema, DeviceType::CUDA, Layout::Strided, {kDouble}, {log, &second},
                   at);
  const Device cuda{DeviceType::CUDA, 0};
  g_log.clear();
  Stack stack;
  (*find_boxed(op.op, cuda, Layout::Strided, kDouble))(op.op, stack);
  (*find_boxed(op.op, cuda, Layout::Strided, kFloat))(op.op, stack);
  EXPECT_EQ(g_log, (std::vector<std::string>{"contexts 2", "contexts 1"}));
}

TEST(Dispatcher, OtherLayoutsHaveTheirOwnKernels) {
  TestOperator& op = added("layouts");
  const Layout sparse = register_layout("test_sparse");
  Dispatcher::instance().register_boxed(op.name, op.schema, DeviceType::CPU, sparse, {}, kBoxedA,
                                        place(KernelSource::Generated, "a.cc", 1));
  EXPECT_EQ(function_at(op, kCPU, kFloat, sparse), kBoxedA.function);
  EXPECT_EQ(function_at(op, kCPU, kFloat), nullptr);
  EXPECT_EQ(op.op.table().find(kCPU, sparse, kFloat), nullptr);
}

TEST(Dispatcher, DeviceFallbacksServeWhatHasNoKernel) {
  TestOperator& op = added("fallback");
  Dispatcher& d = Dispatcher::instance();
  const DeviceType toy = register_device_type("toy");
  const Device device{toy, 0};
  d.register_row(op.op, toy, Layout::Strided, row_of({{kFloat, 1}}),
                 place(KernelSource::DeviceLayout, "a.cc", 1));
  EXPECT_EQ(function_at(op, device, kDouble), nullptr);
  d.register_device_fallback(toy, kBoxedB, place(KernelSource::Fallback, "toy.cc", 5));
  EXPECT_EQ(function_at(op, device, kDouble), kBoxedB.function);
  EXPECT_EQ(function_at(op, device, kFloat), nullptr);  // it has its own
  EXPECT_NE(error_of([&] {
              d.register_device_fallback(toy, kBoxedA, place(KernelSource::Fallback, "x.cc", 6));
            }).find("toy.cc:5"),
            std::string::npos);
  EXPECT_NE(d.dump(op.name).find("toy  fallback  toy.cc:5"), std::string::npos);
}

TEST(Dispatcher, NoKernelSaysWhatExists) {
  TestOperator& op = added("missing");
  EXPECT_EQ(error_of([&] { no_kernel(op.op, kCPU, Layout::Strided, kFloat); }),
            "missing: expected a device, layout and dtype that has a kernel, got cpu, strided, "
            "float32\nkernels exist for: none");
  Dispatcher::instance().register_row(op.op, DeviceType::CPU, Layout::Strided,
                                      row_of({{kFloat, 1}, {kDouble, 1}}),
                                      place(KernelSource::DeviceLayout, "a.cc", 1));
  EXPECT_EQ(
      error_of([&] {
        no_kernel(op.op, Device{DeviceType::CUDA, 1}, Layout::Strided, ScalarType::Float16);
      }),
      "missing: expected a device, layout and dtype that has a kernel, got cuda, strided, float16\n"
      "kernels exist for: cpu (float32, float64)");
}

// ---- layers -------------------------------------------------------------------------------------

// An operator with an unboxed way in, as dispatch() wants it.
struct Traced {
  using Signature = Binary;
  static TestOperator made;
  static Operator& op;
  static Tensor base(const Tensor& self, const Tensor&, const Scalar& alpha) {
    g_log.push_back("base " + to_string(alpha));
    return self;
  }
  static Tensor layered(LayerMask active, const Tensor& self, const Tensor& other,
                        const Scalar& alpha) {
    return LayerCall<Signature>::call(op, active, self, other, alpha);
  }
};
TestOperator Traced::made("traced");
Operator& Traced::op = Traced::made.op;

Tensor profiler_layer(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  g_log.push_back("profiler");
  const ExcludeLayers rest(Layer::Profiler);
  return dispatch<Traced>(self, other, alpha);
}
void autograd_layer(const Operator& op, Stack& stack) {
  g_log.push_back(std::string("autograd ") + op.info().base_name);
  const ExcludeLayers rest(Layer::Autograd);
  const Tensor result =
      dispatch<Traced>(stack[0].as<Tensor>(), stack[1].as<Tensor>(), stack[2].as<Scalar>());
  stack = {Value(result)};
}

TEST(Layers, RunFromTheOutermostIn) {
  Dispatcher& d = Dispatcher::instance();
  d.add_operator(Traced::op);
  Traced::op.set_layer(Layer::Profiler, reinterpret_cast<void*>(&profiler_layer), nullptr,
                       place(KernelSource::Generated, "p.cc", 1));
  Traced::op.set_layer(Layer::Autograd, nullptr, &boxed_kernel<&autograd_layer>,
                       place(KernelSource::Generated, "v.cc", 2));
  Tensor a = empty_cpu({2}, kFloat), b = empty_cpu({2}, kFloat);
  const auto log_of = [&] {
    g_log.clear();
    EXPECT_TRUE(dispatch<Traced>(a, b, Scalar(3)).is_same(a));
    return g_log;
  };
  using Log = std::vector<std::string>;
  EXPECT_EQ(log_of(), (Log{"base 3"}));
  b.impl()->set_layer(Layer::Autograd, true);
  EXPECT_EQ(log_of(), (Log{"autograd traced", "base 3"}));
  {
    const IncludeLayer profile(Layer::Profiler);
    EXPECT_EQ(log_of(), (Log{"profiler", "autograd traced", "base 3"}));
    const ExcludeLayers none(Layer::Autograd);
    EXPECT_EQ(log_of(), (Log{"base 3"}));
  }
  EXPECT_EQ(log_of(), (Log{"autograd traced", "base 3"}));
  EXPECT_EQ(error_of([&] {
              Traced::op.set_layer(Layer::Autograd, nullptr, &kBoxedA,
                                   place(KernelSource::Generated, "w.cc", 3));
            }),
            "aten::traced.Tensor: expected one function for the layer autograd, got a second at "
            "w.cc:3; the first is at v.cc:2");
}

// A call that reads between the writes of a change finds a function all the same.
TEST(Layers, AFunctionReplacesAFallbackWithoutAGap) {
  TestOperator& op = added("replaced_meanwhile");
  op.op.set_layer(Layer::Functional, nullptr, &kBoxedB, place(KernelSource::Fallback, "f.cc", 1));
  op.op.set_layer(Layer::Functional, reinterpret_cast<void*>(&profiler_layer), nullptr,
                  place(KernelSource::Generated, "own.cc", 2));
  EXPECT_EQ(op.op.layer_function(Layer::Functional), reinterpret_cast<void*>(&profiler_layer));
  // A call that saw no function yet asks for this one next.
  EXPECT_EQ(function_on(op, Layer::Functional), kBoxedB.function);
}

TEST(Layers, FallbacksWrapOperatorsOldAndNew) {
  Dispatcher& d = Dispatcher::instance();
  TestOperator& before = added("wrapped_before");
  TestOperator& own = added("wrapped_own");
  own.op.set_layer(Layer::Functional, nullptr, &kBoxedA,
                   place(KernelSource::Generated, "own.cc", 1));
  d.register_layer_fallback(Layer::Functional, kBoxedB, place(KernelSource::Fallback, "f.cc", 7));
  TestOperator& after = added("wrapped_after");
  EXPECT_EQ(function_on(before, Layer::Functional), kBoxedB.function);
  EXPECT_EQ(function_on(after, Layer::Functional), kBoxedB.function);
  EXPECT_EQ(function_on(own, Layer::Functional), kBoxedA.function);
  after.op.set_layer(Layer::Functional, nullptr, &kBoxedA,
                     place(KernelSource::Generated, "late.cc", 2));
  EXPECT_EQ(function_on(after, Layer::Functional), kBoxedA.function);
  EXPECT_NE(
      d.dump(before.name).find("aten::wrapped_before.Tensor  layer functional  fallback  f.cc:7"),
      std::string::npos);
  EXPECT_NE(error_of([&] {
              d.register_layer_fallback(Layer::Functional, kBoxedA,
                                        place(KernelSource::Fallback, "g.cc", 8));
            }),
            "no error");
}

TEST(Layers, AFallbackMayWrapSomeOperatorsOnly) {
  Dispatcher& d = Dispatcher::instance();
  TestOperator& parts = added("made_of_others");
  TestOperator& whole = added("seen_whole");
  TestOperator& unrecorded = added("seen_unrecorded");
  parts.entry.seen = Seen::Never;
  unrecorded.entry.seen = Seen::Unrecorded;
  d.register_layer_fallback(Layer::Dispatch, kBoxedB, place(KernelSource::Fallback, "f.cc", 9),
                            Dispatcher::Wraps::Seen);
  EXPECT_EQ(parts.op.layers() & layer_bit(Layer::Dispatch), 0);
  EXPECT_EQ(function_on(whole, Layer::Dispatch), kBoxedB.function);
  EXPECT_EQ(function_on(unrecorded, Layer::Dispatch), kBoxedB.function);
}

// It comes after autograd, and before what stands in for tensors that kernels would misread.
TEST(Layers, TheOneOfPythonIsBelowAutograd) {
  const ExcludeLayers below(Layer::Autograd);
  EXPECT_FALSE(layer_state().excluded & layer_bit(Layer::Dispatch));
  EXPECT_LT(layer_bit(Layer::Dispatch), layer_bit(Layer::Resolve));
  Tensor t = empty_cpu({1}, ScalarType::Float32);
  EXPECT_FALSE(t.is_taken_over());
  {
    const IncludeLayer mode(Layer::Dispatch);
    EXPECT_TRUE(t.is_taken_over() && Tensor().is_taken_over());
  }
  t.impl()->set_layer(Layer::Dispatch, true);
  EXPECT_TRUE(t.is_taken_over());
  const ExcludeLayers off(Layer::Dispatch);
  EXPECT_FALSE(t.is_taken_over());
}

// ---- boxing -------------------------------------------------------------------------------------

std::tuple<Tensor, Tensor> every_type(const Tensor& t, const Tensor& none, TensorList list,
                                      int64_t i, std::optional<int64_t> maybe, IntList ints,
                                      OptionalIntList no_ints, double d, bool b, const Scalar& s,
                                      ScalarType dtype, std::optional<Device> device,
                                      std::string_view text, std::array<bool, 2> mask,
                                      const Generator& generator) {
  EXPECT_FALSE(none.defined());
  EXPECT_EQ(list.size(), 2u);
  EXPECT_EQ(i, -3);
  EXPECT_EQ(maybe, 9);
  EXPECT_EQ(ints, IntList({1, 2}));
  EXPECT_FALSE(no_ints.has_value());
  EXPECT_EQ(d, 0.5);
  EXPECT_TRUE(b);
  EXPECT_EQ(s.to<int64_t>(), 4);
  EXPECT_EQ(dtype, kDouble);
  EXPECT_EQ(device, kMeta);
  EXPECT_EQ(text, "mean");
  EXPECT_TRUE(mask[0] && !mask[1]);
  EXPECT_FALSE(generator);
  return {t, list[1]};
}
void pass_on(const Operator&, Stack& stack) {
  BoxedCall<decltype(every_type)>::run(reinterpret_cast<void*>(&every_type), stack);
}

// A kernel that fills tensors is given the arguments as they are.
TEST(Boxing, FillBorrowsTheArguments) {
  static std::vector<BorrowedValue> seen;
  BoxedKernel kernel;
  kernel.function = [](void*, const Operator&, Stack&) { ADD_FAILURE(); };
  kernel.fill = [](void* context, const Operator& op, ArrayRef<BorrowedValue> arguments) {
    EXPECT_EQ(context, &seen);
    EXPECT_EQ(&op, &Traced::op);
    seen = arguments.vec();
  };
  kernel.context = &seen;
  const Tensor t = empty_cpu({2}, kFloat), list[] = {t, Tensor()};
  const int64_t dims[] = {4, 5};
  using Kernel =
      void(const Tensor&, const Tensor&, TensorList, int64_t, std::optional<int64_t>,
           OptionalIntList, double, bool, const Scalar&, ScalarType, std::optional<Device>,
           std::string_view, std::array<bool, 2>, const Generator&);
  BoxedCall<Kernel>::through(kernel, Traced::op, t, Tensor(), TensorList(list, 2), -3, std::nullopt,
                             IntList(dims), 0.5, true, Scalar(std::complex<double>(1, 2)), kDouble,
                             Device{DeviceType::CUDA, 1}, "ij", {true, false}, Generator());
  using V = BorrowedValue;
  std::vector<V::Tag> tags;
  for (const V& v : seen) tags.push_back(v.tag);
  EXPECT_EQ(tags, (std::vector<V::Tag>{V::kTensor, V::kNone, V::kTensors, V::kInt, V::kNone,
                                       V::kInts, V::kFloat, V::kBool, V::kComplex, V::kScalarType,
                                       V::kDevice, V::kText, V::kBools, V::kNone}));
  EXPECT_EQ(seen[0].as.tensor, t.impl());
  EXPECT_EQ(seen[2].count, 2u);
  EXPECT_EQ(seen[2].as.tensors[0], t.impl());
  EXPECT_EQ(seen[2].as.tensors[1], nullptr);
  EXPECT_EQ(seen[3].as.integer, -3);
  EXPECT_EQ(seen[5].as.integers, dims);
  EXPECT_EQ(seen[6].as.number, 0.5);
  EXPECT_EQ(seen[7].as.integer, 1);
  EXPECT_EQ(seen[8].as.complex_parts[1], 2);
  EXPECT_EQ(seen[9].as.scalar_type, static_cast<int32_t>(kDouble));
  EXPECT_EQ(seen[10].as.device.index, 1);
  EXPECT_EQ(std::string(seen[11].as.text, seen[11].count), "ij");
  EXPECT_EQ(seen[12].count, 2u);
  EXPECT_EQ(t.impl()->use_count(), 2);  // here and in the list
}

TEST(Boxing, CarriesEveryTypeThereAndBack) {
  const Tensor t = empty_cpu({1}, kFloat), u = empty_cpu({2}, kFloat);
  const Tensor list[] = {t, u};
  const auto [first, second] = BoxedCall<decltype(every_type)>::through(
      boxed_kernel<&pass_on>, Traced::op, t, Tensor(), TensorList(list, 2), -3,
      std::optional<int64_t>(9), DimVector{1, 2}, std::nullopt, 0.5, true, Scalar(4), kDouble,
      std::optional<Device>(kMeta), "mean", std::array<bool, 2>{true, false}, nullptr);
  EXPECT_TRUE(first.is_same(t));
  EXPECT_TRUE(second.is_same(u));
}

TEST(Boxing, WrongValuesAreTypeErrors) {
  Stack stack{Value(1.5)};
  const auto twice = [](int64_t i) { return 2 * i; };
  int64_t (*f)(int64_t) = twice;
  EXPECT_EQ(error_of([&] { BoxedCall<int64_t(int64_t)>::run(reinterpret_cast<void*>(f), stack); }),
            "expected a value of type int, got float");
  stack.clear();
  EXPECT_EQ(error_of([&] { BoxedCall<int64_t(int64_t)>::run(reinterpret_cast<void*>(f), stack); }),
            "expected 1 arguments, got 0");
  stack = {Value(int64_t{4})};
  BoxedCall<int64_t(int64_t)>::run(reinterpret_cast<void*>(f), stack);
  EXPECT_EQ(stack[0].as<int64_t>(), 8);
}

// ---- questions ----------------------------------------------------------------------------------

TEST(Dispatcher, FindsDanglingKernels) {
  // Those of a device without a backend are not missed.
  TestOperator& op = added("dangling", OperatorKind::Kernel,
                           {{"cpu", kFloatBit | kDoubleBit}, {"cuda", kFloatBit}}, 120);
  const auto mine = [&] {
    std::vector<std::string> lines;
    for (const std::string& line : Dispatcher::instance().dangling_kernels())
      if (line.find("aten::dangling.") != std::string::npos) lines.push_back(line);
    return lines;
  };
  EXPECT_EQ(mine(),
            std::vector<std::string>{"native_functions.yaml:120: aten::dangling.Tensor: the entry "
                                     "names a kernel for cpu, nothing registers one"});
  Dispatcher::instance().register_row(op.op, DeviceType::CPU, Layout::Strided,
                                      row_of({{kFloat, 1}}),
                                      place(KernelSource::DeviceLayout, "a.cc", 1));
  EXPECT_TRUE(mine().empty());
}

TEST(Dispatcher, InvariantsHoldUntilARegistrationFails) {
  Dispatcher& d = Dispatcher::instance();
  EXPECT_EQ(d.check_invariants(), std::vector<std::string>());
  EXPECT_NO_THROW(d.check_registrations());
  static TestOperator broken("broken");
  static const std::string wrong = "aten::other.Tensor(Tensor self) -> Tensor";
  broken.info.schema = wrong.c_str();
  d.add_operator(broken.op);
  EXPECT_EQ(
      d.check_invariants(),
      std::vector<std::string>{
          "native_functions.yaml:10: aten::broken.Tensor: the schema is of aten::other.Tensor"});
  // At load time nobody can catch an exception, so it waits.
  TestOperator& op = added("late");
  register_row(op.op, DeviceType::CPU, Layout::Strided, row_of({{kFloat, 1}}),
               place(KernelSource::DeviceLayout, "a.cc", 1));
  register_row(op.op, DeviceType::CPU, Layout::Strided, row_of({{kFloat, 1}}),
               place(KernelSource::DeviceLayout, "b.cc", 2));
  EXPECT_NE(error_of([&] { d.check_registrations(); }).find("got a second at b.cc:2"),
            std::string::npos);
}

}  // namespace
}  // namespace treadle
