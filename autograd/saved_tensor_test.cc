// Saved values: hooks that replace them, freed graphs, and leaves shared by threads.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/saved_tensor.h"

#include <thread>

#include "aten/ops/add.h"
#include "aten/ops/exp.h"
#include "aten/ops/mul.h"
#include "aten/ops/sum.h"
#include "autograd/graph/accumulate_grad.h"
#include "autograd/test_support.h"

namespace treadle::autograd {
namespace {

using namespace testing;

// Keeps copies elsewhere, and counts.
struct Elsewhere : SavedTensorHooks {
  std::shared_ptr<void> pack(const Tensor& t) override {
    ++packed;
    return std::make_shared<Tensor>(aten::mul(t, number(1)));
  }
  Tensor unpack(const std::shared_ptr<void>& packed_value) override {
    ++unpacked;
    return *static_cast<Tensor*>(packed_value.get());
  }
  int packed = 0, unpacked = 0;
};

TEST(SavedTensor, HooksReplaceWhatIsSaved) {
  const Tensor x = vec({1, 2}, true), w = vec({3, 4}, true);
  const auto hooks = std::make_shared<Elsewhere>();
  Tensor y;
  {
    const SavedTensorHooksScope scope(hooks);
    y = aten::sum(aten::mul(x, w));
  }
  EXPECT_EQ(hooks->packed, 2);
  EXPECT_EQ(hooks->unpacked, 0);
  backward({y});
  EXPECT_EQ(hooks->unpacked, 2);
  EXPECT_EQ(grad_values(x), (Values{3, 4}));
  EXPECT_EQ(grad_values(w), (Values{1, 2}));
}

TEST(SavedTensor, HooksKeepTheGraphOfGradients) {
  const Tensor x = number(2, true);
  const auto hooks = std::make_shared<Elsewhere>();
  Tensor y;
  {
    const SavedTensorHooksScope scope(hooks);
    y = aten::mul(aten::exp(x), x);  // an input, a leaf and an output are saved
  }
  const double e = values(aten::exp(number(2)))[0];
  const Tensor first = grad({y}, {x}, {}, true, true)[0];  // e^x (x + 1)
  EXPECT_NEAR(values(first)[0], 3 * e, 1e-12);
  EXPECT_NEAR(values(grad({first}, {x})[0])[0], 4 * e, 1e-12);
}

TEST(SavedTensor, FreedGraphReleasesMemory) {
  const int64_t before = cpu_memory_stats().current_bytes;
  const Tensor x = vec(std::vector<double>(1000, 1.0), true);
  Tensor y = aten::sum(aten::exp(aten::exp(x)));
  const int64_t with_graph = cpu_memory_stats().current_bytes;
  backward({y}, {}, true);
  set_grad(x, Tensor());
  EXPECT_EQ(cpu_memory_stats().current_bytes, with_graph);
  backward({y});
  set_grad(x, Tensor());
  // Only x and y are left.
  EXPECT_LE(cpu_memory_stats().current_bytes - before, 8000 + 64);
}

TEST(SavedTensor, ThreadsShareALeaf) {
  const Tensor x = number(1, true);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) backward({aten::mul(x, number(2))});
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(grad_values(x), (Values{4000}));
}

TEST(SavedTensor, AccumulatorComesAndGoes) {
  const Tensor x = number(1, true);
  Node* first = nullptr;
  {
    const NodePtr kept = grad_accumulator(x);
    first = kept.get();
    EXPECT_EQ(grad_accumulator(x).get(), first);
    EXPECT_EQ(gradient_edge(x).node.get(), first);
  }
  EXPECT_EQ(meta_of(x)->grad_accumulator, nullptr);
  EXPECT_EQ(x.impl()->use_count(), 1);
}

}  // namespace
}  // namespace treadle::autograd
