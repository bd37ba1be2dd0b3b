// Views and in-place changes: the history of the base and of its views, and the refused changes.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/view.h"

#include "aten/ops/add.h"
#include "aten/ops/as_strided.h"
#include "aten/ops/detach.h"
#include "aten/ops/mul.h"
#include "aten/ops/reshape.h"
#include "aten/ops/select.h"
#include "aten/ops/slice.h"
#include "aten/ops/sum.h"
#include "aten/ops/transpose.h"
#include "aten/ops/unbind.h"
#include "autograd/test_support.h"

namespace treadle::autograd {
namespace {

using namespace testing;

TEST(Views, GradientGoesThroughViews) {
  const Tensor x = make({1, 2, 3, 4, 5, 6}, {2, 3}, true);
  const Tensor v = aten::select(aten::transpose(x, 0, 1), 0, 1);
  EXPECT_TRUE(base_of(v).is_same(x));
  backward({aten::sum(aten::mul(v, vec({10, 20})))});
  EXPECT_EQ(grad_values(x), (Values{0, 10, 0, 0, 20, 0}));
}

TEST(Views, InPlaceChangesHistory) {
  const Tensor x = vec({1, 2, 3}, true);
  const Tensor y = aten::mul(x, number(2));
  aten::mul_(y, vec({5, 6, 7}));
  backward({aten::sum(y)});
  EXPECT_EQ(grad_values(x), (Values{10, 12, 14}));
}

TEST(Views, InPlaceOnSelfUsesTheValueBefore) {
  const Tensor x = vec({1, 2, 3}, true), w = vec({5, 6, 7}, true);
  const Tensor y = aten::mul(x, number(2));
  aten::mul_(y, w);
  backward({aten::sum(y)});
  EXPECT_EQ(grad_values(w), (Values{2, 4, 6}));
}

TEST(Views, InPlaceBySelf) {
  const Tensor x = vec({1, 2, 3}, true);
  const Tensor y = aten::mul(x, number(1));
  aten::mul_(y, y);
  backward({aten::sum(y)});
  EXPECT_EQ(grad_values(x), (Values{2, 4, 6}));
}

TEST(Views, ChangingAViewChangesTheBase) {
  const Tensor x = vec({1, 2, 3, 4}, true);
  const Tensor y = aten::mul(x, number(1));
  const Tensor v = aten::slice(y, 0, 1, 3, 1);
  aten::mul_(v, number(10));
  EXPECT_EQ(grad_fn(y)->name(), "CopySlices");
  EXPECT_EQ(grad_fn(v)->name(), "AsStridedBackward0");
  backward({aten::sum(aten::mul(y, y))});
  EXPECT_EQ(grad_values(x), (Values{2, 400, 600, 8}));
}

TEST(Views, ChangingTheBaseChangesAView) {
  const Tensor x = vec({1, 2, 3, 4}, true);
  const Tensor y = aten::mul(x, number(1));
  const Tensor v = aten::slice(y, 0, 1, 3, 1);
  aten::mul_(y, vec({2, 3, 4, 5}));
  backward({aten::sum(v)});
  EXPECT_EQ(grad_values(x), (Values{0, 3, 4, 0}));
}

TEST(Views, AViewOfAPlainTensorComesToRequireGrad) {
  const Tensor plain = vec({1, 2, 3});
  const Tensor v = aten::slice(plain, 0, 0, 2, 1);
  EXPECT_FALSE(v.requires_grad());
  const Tensor w = vec({4, 5, 6}, true);
  aten::mul_(plain, w);
  EXPECT_TRUE(v.requires_grad());
  backward({aten::sum(aten::mul(v, number(1)))});
  EXPECT_EQ(grad_values(w), (Values{1, 2, 0}));
}

TEST(Views, WritingThroughAViewOfAPlainTensor) {
  const Tensor buffer = vec({0, 0, 0}), w = number(7, true);
  const Tensor cell = aten::select(buffer, 0, 1);
  aten::add_(cell, w);
  EXPECT_TRUE(buffer.requires_grad());
  backward({aten::sum(aten::mul(buffer, vec({1, 2, 3})))});
  EXPECT_EQ(grad_values(w), (Values{2}));
}

TEST(Views, SecondDerivativeThroughAnInPlaceChange) {
  const Tensor x = vec({1, 2, 3}, true);
  const Tensor y = aten::mul(x, x);
  aten::mul_(aten::slice(y, 0, 0, 2, 1), aten::slice(x, 0, 1, 3, 1));
  // y = (x0^2 x1, x1^2 x2, x2^2)
  const Tensor first = grad({aten::sum(y)}, {x}, {}, true, true)[0];
  EXPECT_EQ(values(first), (Values{4, 13, 10}));
  // d/dx sum(first) = (2 x1 + 2 x0, 2 x0 + 2 x2 + 2 x1, 2 x1 + 2)
  EXPECT_EQ(values(grad({aten::sum(first)}, {x})[0]), (Values{6, 12, 6}));
}

TEST(Views, LeavesMayNotBeChanged) {
  const Tensor x = vec({1, 2, 3}, true);
  EXPECT_EQ(error_of(ErrorKind::Runtime, [&] { aten::mul_(x, number(2)); }),
            "mul_: a leaf Variable that requires grad is being used in an in-place operation");
  EXPECT_EQ(
      error_of(ErrorKind::Runtime, [&] { aten::mul_(aten::select(x, 0, 0), number(2)); }),
      "mul_: a view of a leaf Variable that requires grad is being used in an in-place operation");
  const NoGrad no_grad;
  aten::mul_(x, number(2));
  EXPECT_EQ(values(x), (Values{2, 4, 6}));
}

TEST(Views, OutputsOfMultiViewFunctionsMayNotBeChanged) {
  const Tensor x = make({1, 2, 3, 4}, {2, 2}, true);
  const auto rows = aten::unbind(aten::mul(x, number(1)));
  EXPECT_NE(error_of(ErrorKind::Runtime, [&] { aten::mul_(rows[0], number(2)); })
                .find("returns multiple views"),
            std::string::npos);
  backward({aten::sum(rows[1])});
  EXPECT_EQ(grad_values(x), (Values{0, 0, 1, 1}));
}

TEST(Views, ViewsMadeWithoutGradMayNotBeChangedWithIt) {
  const Tensor x = vec({1, 2, 3}, true);
  const Tensor y = aten::mul(x, number(1));
  Tensor v;
  {
    const NoGrad no_grad;
    v = aten::select(y, 0, 0);
  }
  EXPECT_NE(error_of(ErrorKind::Runtime, [&] { aten::mul_(v, x); }).find("no_grad mode"),
            std::string::npos);
}

TEST(Views, DetachSharesMemoryAndVersion) {
  const Tensor x = vec({1, 2, 3}, true);
  const Tensor y = aten::mul(x, x);
  const Tensor z = aten::mul(y, y);
  const Tensor d = aten::detach(y);
  EXPECT_FALSE(d.requires_grad());
  aten::mul_(d, number(2));
  EXPECT_NE(error_of(ErrorKind::Runtime, [&] { backward({aten::sum(z)}); }).find("got version 1"),
            std::string::npos);
}

TEST(Views, AsStridedWithOverlap) {
  const Tensor x = vec({1, 2, 3}, true);
  backward({aten::sum(aten::as_strided(x, {2, 2}, {1, 1}, 0))});
  EXPECT_EQ(grad_values(x), (Values{1, 2, 1}));
}

}  // namespace
}  // namespace treadle::autograd
