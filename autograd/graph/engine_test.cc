// The traversal: order, accumulation, graphs kept and freed, gradients of gradients, hooks, errors.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/graph/engine.h"

#include "aten/ops/add.h"
#include "aten/ops/exp.h"
#include "aten/ops/mul.h"
#include "aten/ops/sum.h"
#include "autograd/graph/accumulate_grad.h"
#include "autograd/test_support.h"

namespace treadle::autograd {
namespace {

using namespace testing;

TEST(Engine, MultipliesByTheOtherFactor) {
  const Tensor a = vec({1, 2, 3}, true), b = vec({4, 5, 6}, true);
  const Tensor y = aten::sum(aten::mul(a, b));
  EXPECT_EQ(grad_fn(y)->name(), "SumBackward0");
  backward({y});
  EXPECT_EQ(grad_values(a), (Values{4, 5, 6}));
  EXPECT_EQ(grad_values(b), (Values{1, 2, 3}));
}

TEST(Engine, AddsUpPathsAndCalls) {
  const Tensor x = number(3, true);
  const Tensor y = aten::add(aten::mul(x, x), x);
  backward({y}, {}, true);
  EXPECT_EQ(grad_values(x), (Values{7}));
  backward({y});
  EXPECT_EQ(grad_values(x), (Values{14}));
}

TEST(Engine, SumsWhatWasBroadcast) {
  const Tensor row = vec({1, 2, 3}, true), column = make({10, 20}, {2, 1}, true),
               one = number(2, true);
  backward({aten::sum(aten::mul(aten::mul(row, column), one))});
  EXPECT_EQ(grad_values(row), (Values{60, 60, 60}));
  EXPECT_EQ(grad_values(column), (Values{12, 12}));
  EXPECT_EQ(grad_of(column).sizes(), IntList({2, 1}));
  EXPECT_EQ(grad_values(one), (Values{180}));
}

TEST(Engine, GradientTakesTheDtypeOfItsTensor) {
  const Tensor x = empty_cpu({2}, ScalarType::Float32);
  x.data_as<float>()[0] = 1;
  x.data_as<float>()[1] = 2;
  set_requires_grad(x, true);
  backward({aten::sum(aten::mul(x, vec({3, 4})))});
  EXPECT_EQ(grad_of(x).dtype(), ScalarType::Float32);
  EXPECT_EQ(grad_of(x).data_as<float>()[1], 4.0f);
}

TEST(Engine, SecondBackwardNeedsRetainGraph) {
  const Tensor x = number(3, true);
  const Tensor y = aten::mul(x, x);
  backward({y});
  const std::string message = error_of(ErrorKind::Runtime, [&] { backward({y}); });
  EXPECT_NE(message.find("MulBackward0: Trying to backward through the graph a second time"),
            std::string::npos)
      << message;
}

TEST(Engine, SavedValueChangedInPlace) {
  const Tensor x = number(3, true), b = number(2);
  const Tensor y = aten::mul(x, b);
  aten::mul_(b, number(5));
  const std::string message = error_of(ErrorKind::Runtime, [&] { backward({y}); });
  EXPECT_EQ(message.rfind(
                "MulBackward0: expected argument 'other' of mul at version 0, got version 1", 0),
            0u)
      << message;
}

TEST(Engine, SavedResultChangedInPlace) {
  const Tensor x = number(0, true);
  const Tensor y = aten::exp(x);
  aten::mul_(y, number(2));
  const std::string message = error_of(ErrorKind::Runtime, [&] { backward({y}); });
  EXPECT_NE(
      message.find("ExpBackward0: expected result 'result' of exp at version 0, got version 1"),
      std::string::npos)
      << message;
}

TEST(Engine, ImplicitGradientOnlyForScalars) {
  const Tensor x = vec({1, 2}, true);
  const std::string message = error_of(ErrorKind::Runtime, [&] { backward({aten::mul(x, x)}); });
  EXPECT_EQ(message,
            "backward: grad can be implicitly created only for scalar outputs, got shape (2,)");
  EXPECT_NE(error_of(ErrorKind::Runtime,
                     [&] {
                       backward({aten::mul(x, x)}, {vec({1, 2, 3})});
                     }),
            "");
  EXPECT_NE(
      error_of(ErrorKind::Runtime, [&] { backward({number(1)}); }).find("does not require grad"),
      std::string::npos);
}

TEST(Engine, GradReturnsAndDoesNotAccumulate) {
  const Tensor x = number(3, true), w = number(2, true), unused = number(1, true);
  const Tensor y = aten::mul(aten::mul(x, x), w);
  const auto g = grad({y}, {x}, {}, true);
  EXPECT_EQ(values(g[0]), (Values{12}));
  EXPECT_FALSE(grad_of(x).defined());
  EXPECT_FALSE(grad_of(w).defined());
  EXPECT_NE(error_of(ErrorKind::Runtime, [&] { grad({y}, {unused}, {}, true); })
                .find("not have been used"),
            std::string::npos);
  const auto both = grad({y}, {x, unused}, {}, true, false, true);
  EXPECT_EQ(values(both[0]), (Values{12}));
  EXPECT_FALSE(both[1].defined());
}

TEST(Engine, GradOfAnIntermediate) {
  const Tensor x = number(3, true);
  const Tensor h = aten::mul(x, x);
  const Tensor y = aten::mul(h, h);
  const auto g = grad({y}, {h, x});
  EXPECT_EQ(values(g[0]), (Values{18}));
  EXPECT_EQ(values(g[1]), (Values{108}));
}

TEST(Engine, GradientsOfGradients) {
  const Tensor x = number(2, true);
  const Tensor y = aten::mul(aten::mul(x, x), x);
  const Tensor first = grad({y}, {x}, {}, true, true)[0];
  EXPECT_EQ(values(first), (Values{12}));
  const Tensor second = grad({first}, {x}, {}, true, true)[0];
  EXPECT_EQ(values(second), (Values{12}));
  EXPECT_EQ(values(grad({second}, {x})[0]), (Values{6}));
}

TEST(Engine, SecondDerivativeThroughASavedResult) {
  const Tensor x = number(0, true);
  const Tensor first = grad({aten::exp(aten::mul(x, number(2)))}, {x}, {}, true, true)[0];
  EXPECT_EQ(values(first), (Values{2}));
  EXPECT_EQ(values(grad({first}, {x})[0]), (Values{4}));
}

TEST(Engine, BackwardWithInputsTouchesOnlyThose) {
  const Tensor x = number(3, true), w = number(2, true);
  const Tensor h = aten::mul(x, w);
  const Tensor y = aten::mul(h, h);
  backward({y}, {}, false, false, {w, h});
  EXPECT_EQ(grad_values(w), (Values{36}));
  EXPECT_EQ(grad_values(h), (Values{12}));
  EXPECT_FALSE(grad_of(x).defined());
}

TEST(Engine, HooksSeeAndReplaceGradients) {
  const Tensor x = number(3, true);
  const Tensor h = aten::mul(x, number(2));
  Values seen;
  add_hook(h, [&](const Tensor& g) {
    seen = values(g);
    return aten::mul(g, number(10));
  });
  const HookId on_leaf = add_hook(x, [](const Tensor& g) { return aten::add(g, number(1)); });
  retain_grad(h);
  const Tensor y = aten::mul(h, number(5));
  backward({y}, {}, true);
  EXPECT_EQ(seen, (Values{5}));
  EXPECT_EQ(grad_values(h), (Values{50}));
  EXPECT_EQ(grad_values(x), (Values{101}));
  remove_hook(x, on_leaf);
  backward({y});
  EXPECT_EQ(grad_values(x), (Values{201}));
}

TEST(Engine, NodeHooksAndPostAccumulate) {
  const Tensor x = number(3, true);
  const Tensor y = aten::mul(x, number(2));
  int order = 0, before = 0, after = 0, accumulated = 0;
  grad_fn(y)->add_pre_hook([&](const Grads& g) {
    before = ++order;
    return Grads{aten::mul(g[0], number(3))};
  });
  grad_fn(y)->add_post_hook([&](const Grads& inputs, const Grads& outputs) {
    after = ++order;
    EXPECT_EQ(values(outputs[0]), (Values{3}));
    EXPECT_EQ(values(inputs[0]), (Values{6}));
    return Grads();
  });
  add_post_accumulate_hook(x, [&](const Tensor& leaf) {
    accumulated = ++order;
    EXPECT_EQ(grad_values(leaf), (Values{6}));
  });
  backward({y});
  EXPECT_EQ(before, 1);
  EXPECT_EQ(after, 2);
  EXPECT_EQ(accumulated, 3);
}

TEST(Engine, BackwardInsideBackward) {
  const Tensor x = number(3, true), inner = number(5, true);
  const Tensor y = aten::mul(x, x);
  add_hook(y, [&](const Tensor&) {
    const GradMode recording(true);
    backward({aten::mul(inner, inner)});
    return Tensor();
  });
  backward({aten::mul(y, number(2))});
  EXPECT_EQ(grad_values(inner), (Values{10}));
  EXPECT_EQ(grad_values(x), (Values{12}));
}

TEST(Engine, GradWithCreateGraphInsideARestrictedWalk) {
  // A graph recorded inside a traversal that needs few edges must still have all of its own edges.
  const Tensor x = number(2, true), w = number(3, true);
  const Tensor y = aten::mul(aten::mul(x, x), aten::mul(w, w));
  const Tensor first = grad({y}, {x}, {}, true, true)[0];  // 2 x w^2
  EXPECT_EQ(values(grad({first}, {w})[0]), (Values{24}));
}

TEST(Engine, NoGradRecordsNothing) {
  const Tensor x = number(3, true);
  const NoGrad no_grad;
  const Tensor y = aten::mul(x, x);
  EXPECT_FALSE(y.requires_grad());
  EXPECT_TRUE(is_leaf(y));
}

TEST(Engine, InferenceTensorsAreNotSaved) {
  Tensor made;
  {
    const AutogradMode saved = autograd_mode();
    autograd_mode() = {.grad = false, .inference = true};
    made = aten::mul(number(3, true), number(2));
    autograd_mode() = saved;
  }
  EXPECT_TRUE(made.impl()->is_inference());
  EXPECT_FALSE(made.requires_grad());
  const Tensor x = number(1, true);
  EXPECT_NE(error_of(ErrorKind::Runtime, [&] { aten::mul(x, made); })
                .find("inference tensors cannot be saved"),
            std::string::npos);
  EXPECT_NE(error_of(ErrorKind::Runtime, [&] { set_requires_grad(made, true); }), "");
  EXPECT_TRUE(aten::add(x, made).requires_grad());
  EXPECT_EQ(error_of(ErrorKind::Runtime, [&] { aten::mul_(made, number(2)); })
                .rfind("mul_: inplace update to an inference tensor", 0),
            0u);
}

TEST(Engine, HooksMustReturnWhatFits) {
  const Tensor x = number(3, true);
  add_hook(x, [](const Tensor&) { return vec({1, 2}); });
  EXPECT_EQ(error_of(ErrorKind::Runtime, [&] { backward({aten::mul(x, number(2))}); }),
            "AccumulateGrad: expected a tensor hook to return float64[], got float64[2]");
}

TEST(Engine, OutFormsAreRejectedOnlyWhileRecording) {
  const Tensor x = number(3, true), out = number(0);
  EXPECT_NE(error_of(ErrorKind::Runtime, [&] { aten::mul_out(x, x, out); })
                .find("don't support automatic differentiation"),
            std::string::npos);
  const NoGrad no_grad;
  aten::mul_out(x, x, out);
  EXPECT_EQ(values(out), (Values{9}));
}

TEST(Engine, RequiresGradNeedsAFloatingLeaf) {
  const Tensor ints = empty_cpu({2}, ScalarType::Int64);
  EXPECT_NE(error_of(ErrorKind::Runtime, [&] { set_requires_grad(ints, true); })
                .find("only Tensors of floating point"),
            std::string::npos);
  const Tensor y = aten::mul(number(1, true), number(2));
  EXPECT_NE(
      error_of(ErrorKind::Runtime, [&] { set_requires_grad(y, false); }).find("leaf variables"),
      std::string::npos);
}

TEST(Engine, AMillionNodes) {
  const int64_t before = cpu_memory_stats().current_bytes;
  {
    const Tensor x = number(1, true), one = number(1);
    Tensor y = x;
    for (int i = 0; i < 1000000; ++i) y = aten::mul(y, one);
    backward({y});
    EXPECT_EQ(grad_values(x), (Values{1}));
    y = x;
    for (int i = 0; i < 1000000; ++i) y = aten::add(y, one);
  }
  EXPECT_EQ(cpu_memory_stats().current_bytes, before);
}

TEST(Engine, LeafTakesOverTheBuffer) {
  const Tensor x = vec({1, 2}, true);
  const Tensor g = vec({3, 4});
  backward({aten::mul(x, number(1))}, {g});
  EXPECT_NE(grad_of(x).data(), g.data());  // the caller still has its own
  EXPECT_EQ(grad_of(x).impl()->use_count(), 2);
}

}  // namespace
}  // namespace treadle::autograd
