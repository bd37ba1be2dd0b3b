// Objects that a tensor alone keeps alive are visited once, through their owner.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/graph/visit.h"

#include <map>

#include "aten/ops/exp.h"
#include "aten/ops/mul.h"
#include "autograd/saved_tensor.h"
#include "autograd/test_support.h"

namespace treadle::autograd {
namespace {

using testing::vec;

struct Told final : OwnedVisitor {
  void object(void* o) override { ++objects[o]; }
  void kept(const std::shared_ptr<void>& value) override { ++objects[value.get()]; }
  void tensor(const Tensor&) override { ++tensors; }
  std::map<void*, int> objects;
  int tensors = 0;
};

Told told_by(const Tensor& t) {
  Told told;
  visit_owned(t, told);
  return told;
}

Tensor leave(const Tensor&) { return Tensor(); }
int a, b, c, d;  // objects of another language

TEST(Visit, TellsTheHooksOfALeaf) {
  const Tensor x = vec({1}, true);
  add_hook(x, leave, &a);
  add_post_accumulate_hook(
      x, [](const Tensor&) {}, &b);
  add_hook(x, leave);  // holds nothing
  EXPECT_EQ(told_by(x).objects, (std::map<void*, int>{{&a, 1}, {&b, 1}}));
}

TEST(Visit, TellsTheHooksOfTheGraphBehindATensor) {
  const Tensor x = vec({1}, true);
  Tensor y = aten::exp(x);
  add_hook(y, leave, &a);
  y = aten::mul(y, 2);
  grad_fn(y)->add_pre_hook([](const Grads&) { return Grads(); }, &b);
  y = aten::mul(y, 3);
  grad_fn(y)->add_post_hook([](const Grads&, const Grads&) { return Grads(); }, &c);
  grad_fn(y)->ensure_hooks().notes = std::shared_ptr<void>(&d, [](void*) {});
  EXPECT_EQ(told_by(y).objects, (std::map<void*, int>{{&a, 1}, {&b, 1}, {&c, 1}, {&d, 1}}));
}

TEST(Visit, LeavesOutWhatAnotherOwnsToo) {
  const Tensor x = vec({1}, true);
  const Tensor y = aten::exp(x);
  add_hook(y, leave, &a);
  const Tensor z = aten::mul(y, 2), other = aten::mul(y, 3);
  EXPECT_TRUE(told_by(z).objects.empty());
  EXPECT_TRUE(told_by(y).objects.empty());  // z's graph leads to its node as well
}

TEST(Visit, GoesThroughSavedTensorsAndGradients) {
  const Tensor x = vec({1}, true);
  Tensor y = vec({2}, true);
  add_hook(y, leave, &a);
  set_grad(y, vec({3}));
  const Tensor z = aten::mul(x, y);
  y.reset();
  // The product saved y and leads to its accumulator, so y has two owners.
  EXPECT_TRUE(told_by(z).objects.empty());
  set_grad(x, vec({3}));
  EXPECT_EQ(told_by(x).tensors, 1);
}

TEST(Visit, TellsWhatPackHooksReturned) {
  struct Elsewhere : SavedTensorHooks {
    std::shared_ptr<void> pack(const Tensor&) override { return std::make_shared<int>(1); }
    Tensor unpack(const std::shared_ptr<void>&) override { return vec({1}); }
  };
  const Tensor x = vec({1}, true);
  const SavedTensorHooksScope hooks(std::make_shared<Elsewhere>());
  EXPECT_EQ(told_by(aten::exp(x)).objects.size(), 1u);
}

TEST(Visit, ALongChainIsWalkedWithoutRecursion) {
  Tensor y = vec({1}, true);
  for (int i = 0; i < 200'000; ++i) y = aten::mul(y, 1);
  add_hook(y, leave, &a);
  EXPECT_EQ(told_by(y).objects.size(), 1u);
}

TEST(Visit, ClearingLetsGoOfHooksGradientAndHistory) {
  const Tensor x = vec({1}, true);
  const auto held = std::make_shared<int>(1);
  add_hook(
      x, [held](const Tensor&) { return Tensor(); }, &a);
  set_grad(x, vec({3}));
  EXPECT_EQ(held.use_count(), 2);
  clear_owned(x);
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_FALSE(grad_of(x).defined());
  EXPECT_FALSE(x.requires_grad());
}

}  // namespace
}  // namespace treadle::autograd
