// Custom functions in C++: saving, several outputs, arguments changed or returned.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/custom_function.h"

#include "aten/ops/add.h"
#include "aten/ops/mul.h"
#include "aten/ops/sum.h"
#include "autograd/test_support.h"

namespace treadle::autograd {
namespace {

using namespace testing;

struct Cube : Function<Cube> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x, double scale) {
    ctx.save_for_backward({x});
    ctx.saved_data["scale"] = scale;
    return aten::mul(aten::mul(x, x), aten::mul(x, Scalar(scale)));
  }
  static Grads backward(FunctionContext& ctx, const Grads& grads) {
    const Tensor x = ctx.saved_tensors()[0];
    const double scale = ctx.saved_data["scale"].as<double>();
    return {aten::mul(grads[0], aten::mul(aten::mul(x, x), Scalar(3 * scale))), Tensor()};
  }
};

struct SumAndProduct : Function<SumAndProduct> {
  static std::vector<Tensor> forward(FunctionContext& ctx, const Tensor& a, const Tensor& b) {
    ctx.save_for_backward({a, b});
    return {aten::add(a, b), aten::mul(a, b)};
  }
  static Grads backward(FunctionContext& ctx, const Grads& grads) {
    const auto saved = ctx.saved_tensors();
    return {aten::add(grads[0], aten::mul(grads[1], saved[1])),
            aten::add(grads[0], aten::mul(grads[1], saved[0]))};
  }
};

struct DoubleInPlace : Function<DoubleInPlace> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    aten::mul_(x, number(2));
    ctx.mark_dirty({x});
    return x;
  }
  static Grads backward(FunctionContext&, const Grads& grads) {
    return {aten::mul(grads[0], number(2))};
  }
};

struct SaveOutput : Function<SaveOutput> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    const Tensor y = aten::mul(x, x);
    ctx.save_for_backward({y});
    return y;
  }
  static Grads backward(FunctionContext& ctx, const Grads& grads) {
    return {aten::mul(grads[0], ctx.saved_tensors()[0])};
  }
};

struct WrongCount : Function<WrongCount> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return aten::mul(x, x); }
  static Grads backward(FunctionContext&, const Grads& grads) { return {grads[0], grads[0]}; }
};

TEST(CustomFunction, GradientAndItsGradient) {
  const Tensor x = number(2, true);
  const Tensor y = Cube::apply(x, 2.0);
  EXPECT_EQ(values(y), (Values{16}));
  EXPECT_EQ(grad_fn(y)->name(), "CppFunction");
  const Tensor first = grad({y}, {x}, {}, true, true)[0];
  EXPECT_EQ(values(first), (Values{24}));
  EXPECT_EQ(values(grad({first}, {x})[0]), (Values{24}));
}

TEST(CustomFunction, MissingGradientsAreZeros) {
  const Tensor a = number(3, true), b = number(5, true);
  const auto y = SumAndProduct::apply(a, b);
  backward({y[1]}, {}, true);
  EXPECT_EQ(grad_values(a), (Values{5}));
  backward({aten::add(y[0], y[1])});
  EXPECT_EQ(grad_values(a), (Values{11}));
}

TEST(CustomFunction, ArgumentChangedInPlace) {
  const Tensor x = vec({1, 2}, true);
  const Tensor h = aten::mul(x, number(3));
  const Tensor y = DoubleInPlace::apply(h);
  EXPECT_TRUE(y.is_same(h));
  backward({aten::sum(y)});
  EXPECT_EQ(grad_values(x), (Values{6, 6}));
}

TEST(CustomFunction, SavedOutputMakesNoCycle) {
  const int64_t before = cpu_memory_stats().current_bytes;
  {
    const Tensor x = number(2, true);
    const Tensor y = SaveOutput::apply(x);
    backward({y}, {}, true);
    EXPECT_EQ(grad_values(x), (Values{4}));
  }
  EXPECT_EQ(cpu_memory_stats().current_bytes, before);
}

TEST(CustomFunction, SavedTensorsAreChecked) {
  const Tensor x = number(2, true);
  const Tensor h = aten::mul(x, number(1));
  const Tensor y = Cube::apply(h, 1.0);
  aten::mul_(h, number(2));
  EXPECT_NE(
      error_of(ErrorKind::Runtime, [&] { backward({y}); }).find("at version 0, got version 1"),
      std::string::npos);
  const Tensor z = Cube::apply(x, 1.0);
  backward({z});
  EXPECT_NE(error_of(ErrorKind::Runtime, [&] { backward({z}); }).find("a second time"),
            std::string::npos);
}

TEST(CustomFunction, CountOfGradientsIsChecked) {
  const Tensor x = number(2, true);
  EXPECT_EQ(error_of(ErrorKind::Runtime, [&] { backward({WrongCount::apply(x)}); }),
            "CppFunction: backward expected to return 1 gradients, one for each argument of "
            "forward, got 2");
}

}  // namespace
}  // namespace treadle::autograd
