// A layout from outside: a matrix kept as a column and a row whose product it is. Its calls go to
// its kernels or to its rule, or are errors.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/layouts.h"

#include <gtest/gtest.h>

#include "aten/ops/exp.h"
#include "aten/ops/mm.h"
#include "aten/ops/neg.h"
#include "aten/ops/ones.h"
#include "autograd/graph/engine.h"
#include "autograd/meta.h"

namespace treadle {
namespace {

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Tensor rank_one(const Tensor& column, const Tensor& row);

const Layout& outer() {
  static const Layout layout = [] {
    static const LayoutInfo info{{"column", "row"}, {}, 0, nullptr};
    const Layout made = register_layout("test_outer");
    describe_layout(made, info);
    register_layout_kernel<aten::ops::mm>(
        made, +[](const Tensor& self, const Tensor& mat2) {
          const auto contents = contents_of(self);
          return rank_one(contents->parts[0], aten::mm(contents->parts[1], mat2));
        });
    set_layout_rule(made, [](const Operator& op, Stack& stack) {
      if (&op != &aten::ops::neg::op) return false;
      const auto contents = contents_of(stack.back().as<Tensor>());
      stack.back() = Value(rank_one(aten::neg(contents->parts[0]), contents->parts[1]));
      return true;
    });
    return made;
  }();
  return layout;
}

Tensor rank_one(const Tensor& column, const Tensor& row) {
  return layout_tensor(outer(), {column.size(0), row.size(1)}, {{column, row}, {}});
}

Tensor example() { return rank_one(aten::ones({2, 1}), aten::ones({1, 3})); }

TEST(Layouts, ATensorIsMadeOfItsParts) {
  const Tensor t = example();
  EXPECT_EQ(to_string(t.layout()), "treadle.test_outer");
  EXPECT_EQ(t.sizes(), IntList({2, 3}));
  EXPECT_EQ(t.dtype(), ScalarType::Float32);
  EXPECT_EQ(values_of(t).sizes(), IntList({2, 1}));
  EXPECT_EQ(error_of([&] { t.data(); }),
            "expected a strided tensor, whose elements lie in one memory, got one of layout "
            "test_outer; call to_dense()");
  EXPECT_EQ(error_of([&] { alias_with_geometry(t, {0}, {1}, 0); }),
            "expected a strided tensor, got one of layout test_outer; call to_dense()");
}

TEST(Layouts, CallsGoToKernelsAndRules) {
  const Tensor product = aten::mm(example(), aten::ones({3, 4}));
  EXPECT_EQ(product.layout(), outer());
  EXPECT_EQ(product.sizes(), IntList({2, 4}));
  EXPECT_EQ(contents_of(product)->parts[1].data_as<float>()[0], 3);
  const Tensor negative = aten::neg(example());
  EXPECT_EQ(values_of(negative).data_as<float>()[0], -1);
  const Tensor t = example();
  aten::neg_(t);
  EXPECT_EQ(values_of(t).data_as<float>()[1], -1);
  EXPECT_EQ(t.version(), 1u);
}

TEST(Layouts, OtherCallsAreErrors) {
  EXPECT_EQ(error_of([] { aten::exp(example()); }),
            "exp: expected strided tensors, got one of layout test_outer; call to_dense()");
  EXPECT_EQ(error_of([] {
              aten::neg_out(example(), aten::ones({2, 3}));
            }),
            "neg: expected no out= for tensors of layout test_outer, got one");
}

TEST(Layouts, TheFallbackIsAskedLast) {
  set_layout_fallback(outer(), [](const Operator& op, Stack& stack) {
    if (&op != &aten::ops::exp::op) return false;
    const auto contents = contents_of(stack.back().as<Tensor>());
    stack.back() = Value(aten::exp(aten::mm(contents->parts[0], contents->parts[1])));
    return true;
  });
  EXPECT_TRUE(aten::exp(example()).is_strided());
  EXPECT_EQ(aten::mm(example(), aten::ones({3, 4})).layout(), outer());
  set_layout_fallback(outer(), nullptr);
  EXPECT_NE(error_of([] { aten::exp(example()); }), "no error");
}

TEST(Layouts, ErrorsOfRegistrationsAreKept) {
  Dispatcher::instance().take_registration_errors();
  [[maybe_unused]] const auto registered = while_loading([] { register_layout("strided"); });
  EXPECT_EQ(Dispatcher::instance().take_registration_errors(),
            std::vector<std::string>{"expected a new layout name, got 'strided', which is taken"});
}

TEST(Layouts, GradientsFlowToTheParts) {
  const Tensor column = aten::ones({2, 1});
  autograd::set_requires_grad(column, true);
  const Tensor t = aten::neg(rank_one(column, aten::ones({1, 3})));
  EXPECT_TRUE(requires_grad_in_parts(t));
  EXPECT_FALSE(t.requires_grad());
  const Tensor root = values_of(t), start = aten::ones({2, 1});
  autograd::backward({&root, 1}, {&start, 1}, false, false, {});
  EXPECT_EQ(autograd::grad_of(column).data_as<float>()[0], -1);
}

}  // namespace
}  // namespace treadle
