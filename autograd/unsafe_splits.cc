// Pieces of a tensor that are independent results, not views. Each may be written in place and
// counts its own versions, because the tensor itself is not used again.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/cat.h"
#include "aten/ops/unsafe_chunk.h"
#include "aten/ops/unsafe_split.h"
#include "aten/ops/unsafe_split_with_sizes.h"
#include "autograd/alias.h"
#include "autograd/record.h"

namespace treadle::autograd {
namespace {

class UnsafeSplitBackward final : public Node {
 public:
  explicit UnsafeSplitBackward(int64_t dim) : dim_(dim) {}
  Grads apply(Grads&& grads) override {
    if (!any_defined(grads) || !should_compute(0)) return Grads(1);
    for (uint32_t i = 0; i < grads.size(); ++i) grads[i] = or_zeros(grads[i], Node::input(i));
    return {aten::cat(as_list(grads), dim_)};
  }
  std::string name() const override { return "UnsafeSplitBackward0"; }

 private:
  int64_t dim_;
};

template <class Op, class Sizes>
std::vector<Tensor> split(const Tensor& self, const Sizes& sizes, int64_t dim) {
  NodePtr node;
  if (records(self)) {
    node = make_intrusive<UnsafeSplitBackward>(dim);
    add_edges(*node, self);
  }
  std::vector<Tensor> pieces = call_below<Op>(self, sizes, dim);
  for (Tensor& piece : pieces) {
    // It may be the tensor itself, or one that stands for all pieces of no elements.
    if (piece.impl()->use_count() > 1) piece = alias_without_history(piece);
    piece.impl()->detach_version();
  }
  if (node) set_history(pieces, node);
  return pieces;
}

namespace ops = aten::ops;

std::vector<Tensor> unsafe_chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  return split<ops::unsafe_chunk>(self, chunks, dim);
}
std::vector<Tensor> unsafe_split(const Tensor& self, int64_t split_size, int64_t dim) {
  return split<ops::unsafe_split_Tensor>(self, split_size, dim);
}
std::vector<Tensor> unsafe_split_with_sizes(const Tensor& self, IntList split_sizes, int64_t dim) {
  return split<ops::unsafe_split_with_sizes>(self, split_sizes, dim);
}

[[maybe_unused]] const Registration registered[] = {
    register_layer<ops::unsafe_chunk>(Layer::Autograd, &unsafe_chunk),
    register_layer<ops::unsafe_split_Tensor>(Layer::Autograd, &unsafe_split),
    register_layer<ops::unsafe_split_with_sizes>(Layer::Autograd, &unsafe_split_with_sizes),
};

}  // namespace
}  // namespace treadle::autograd
