// SPDX-License-Identifier: Apache-2.0
#include "aten/fusion/contraction.h"

#include <algorithm>
#include <cstring>

#include "aten/engine/copy.h"
#include "aten/engine/loop_geometry.h"
#include "aten/fusion/memory.h"
#include "aten/fusion/step.h"
#include "aten/ops/indexing/cpu/reindex.h"
#include "aten/ops/mul.h"
#include "aten/ops/reindex_reduce.h"
#include "core/base/geometry.h"
#include "core/base/layers.h"
#include "core/dispatch/expression.h"

namespace treadle::fusion {
namespace {

// A part of the loops of a body: those that a fold keeps first, and then those that it folds.
struct Box {
  DimVector begin, size;  // in this order
};

// The map for a box. `order` has the loops in the order of the box.
shape::IndexMap map_of(const shape::IndexMap& map, const DimVector& order, const Box& box) {
  using shape::IndexNode;
  shape::IndexMap part{box.size, map.extents, {}};
  std::vector<int> place(order.size());
  for (size_t k = 0; k < order.size(); ++k)
    place[static_cast<size_t>(order[k])] = static_cast<int>(k);
  for (const shape::IndexFunction& function : map.functions) {
    shape::IndexFunction made;
    std::vector<int32_t> numbers;  // of the nodes
    const auto add = [&](IndexNode node) {
      made.nodes.push_back(std::move(node));
      return static_cast<int32_t>(made.nodes.size()) - 1;
    };
    const auto constant = [&](int64_t value) {
      return add(
          {.kind = IndexNode::Constant, .value = value, .range = shape::ValueRange{value, value}});
    };
    for (IndexNode node : function.nodes) {
      if (node.loop >= 0) node.loop = place[static_cast<size_t>(node.loop)];
      if (node.kind == IndexNode::Loop) {
        const auto at = static_cast<size_t>(node.loop);
        const int64_t begin = box.begin[at], last = box.size[at] - 1;
        const int loop = node.loop;
        node.value = loop;
        node.range = shape::ValueRange{0, last};
        int32_t number = last == 0 ? constant(begin) : add(std::move(node));
        if (last > 0 && begin > 0) {
          const int32_t start = constant(begin);
          number = add({.kind = IndexNode::Add,
                        .left = number,
                        .right = start,
                        .loop = loop,
                        .range = shape::ValueRange{begin, begin + last}});
        }
        numbers.push_back(number);
        continue;
      }
      if (node.left >= 0) node.left = numbers[static_cast<size_t>(node.left)];
      if (node.right >= 0) node.right = numbers[static_cast<size_t>(node.right)];
      numbers.push_back(add(std::move(node)));
    }
    made.root = numbers[static_cast<size_t>(function.root)];
    part.functions.push_back(std::move(made));
  }
  return part;
}

// Computes the body for one box at a time.
class Evaluation {
 public:
  Evaluation(const Body& body, IntList loops, const DimVector& order) : body_(body), order_(order) {
    for (const Source* leaf : body.leaves) {
      Leaf& made = leaves_.emplace_back();
      const bool is_map = is_reindexed(*leaf);
      made.indexing = is_map ? leaf->node->indexing.get() : nullptr;
      made.memory = tensor_of(is_map ? leaf->node->inputs[0] : *leaf);
      if (is_map) continue;
      const DimVector strides = broadcast_strides(loops, leaf->sizes, leaf->strides);
      for (const int64_t loop : order) made.strides.push_back(strides[static_cast<size_t>(loop)]);
    }
    add_steps();
  }

  // The values of the box, in its order.
  Tensor run(const Box& box) {
    std::vector<Tensor> read;
    for (const Leaf& leaf : leaves_) read.push_back(values_of(leaf, box));
    if (body_.nodes.empty()) return contiguous(read[0]);
    const Tensor result = empty_cpu(box.size, body_.nodes.back()->dtype);
    read.push_back(result);
    std::vector<DimVector> strides;
    for (const Tensor& t : read) {
      DimVector& bytes = strides.emplace_back(t.strides());
      for (int64_t& stride : bytes) stride *= t.element_size();
    }
    DimVector shape = box.size;
    order_dimensions(shape, strides.data(), static_cast<int>(strides.size()));
    if (shape.empty()) shape.push_back(1);
    std::vector<PointwiseOperand> operands;
    for (size_t k = 0; k < read.size(); ++k) {
      if (strides[k].empty()) strides[k].push_back(0);
      operands.push_back({static_cast<char*>(read[k].data()), strides[k].data(), read[k].dtype()});
    }
    static constexpr int64_t kOne = 1;
    simd::run_program(program_, {operands.data(), operands.size()}, shape, IntList(&kOne, 1));
    return result;
  }

 private:
  struct Leaf {
    const Indexing* indexing;  // null for what is in memory
    Tensor memory;
    DimVector strides;  // of memory, for the loops in order
  };

  void add_steps() {
    if (body_.nodes.empty()) return;
    for (const Leaf& leaf : leaves_) program_.read(leaf.memory.dtype());
    std::vector<int> numbers;
    const auto number_of = [&](const Source& source) {
      for (size_t n = 0; n < numbers.size(); ++n)
        if (body_.nodes[n] == source.node.get() && source.is_whole) return numbers[n];
      const auto at = std::find(body_.leaves.begin(), body_.leaves.end(), &source);
      return static_cast<int>(at - body_.leaves.begin());
    };
    for (const Node* node : body_.nodes) {
      simd::ProgramStep step = pointwise_step(*node);
      for (const Source& source : node->inputs)
        step.inputs[static_cast<size_t>(step.input_count++)] = number_of(source);
      numbers.push_back(program_.add(step));
    }
    program_.write(numbers.back());
  }

  Tensor values_of(const Leaf& leaf, const Box& box) const {
    if (leaf.indexing != nullptr) {
      const Tensor values = empty_cpu(box.size, leaf.memory.dtype());
      cpu::reindex_into(map_of(leaf.indexing->map, order_, box), leaf.memory, leaf.indexing->filler,
                        values);
      return values;
    }
    int64_t offset = leaf.memory.storage_offset();
    for (size_t k = 0; k < box.begin.size(); ++k) offset += box.begin[k] * leaf.strides[k];
    return alias_with_geometry(leaf.memory, box.size, leaf.strides, offset);
  }

  static Tensor contiguous(const Tensor& t) {
    if (t.is_contiguous()) return t;
    const Tensor copy = empty_cpu(t.sizes(), t.dtype());
    copy_strided(copy, t);
    return copy;
  }

  const Body& body_;
  const DimVector& order_;
  std::vector<Leaf> leaves_;
  simd::Program program_;
};

// Folds the body piece by piece.
class Pieces {
 public:
  Pieces(const Node& node, const Body& body, const Storage& result) : node_(node), result_(result) {
    const IntList loops = node.inputs[0].sizes;
    for (const bool folded : {false, true}) {
      for (size_t l = 0; l < loops.size(); ++l) {
        const auto loop = static_cast<int64_t>(l);
        if ((std::find(node.folded_dims.begin(), node.folded_dims.end(), loop) !=
             node.folded_dims.end()) != folded) {
          continue;
        }
        order_.push_back(loop);
        sizes_.push_back(loops[l]);
      }
      if (!folded) kept_ = order_.size();
    }
    evaluation_.emplace(body, loops, order_);
  }

  void run() {
    size_t whole = sizes_.size();  // dimensions from here on are in a piece as a whole
    int64_t inner = 1;
    while (whole > 0 && inner <= kLargestPiece / sizes_[whole - 1]) inner *= sizes_[--whole];
    Box box{DimVector(sizes_.size()), sizes_};
    if (whole == 0) return fold(box);
    const size_t cut = whole - 1;
    const int64_t most = std::max<int64_t>(1, kLargestPiece / inner);
    if (cut < kept_) return each(box, 0, cut, most, [&] { fold(box); });
    // Parts of what makes one result, and then a fold of their results.
    if (kept_ == 0) return fold_cut(box, cut, most);
    each(box, 0, kept_ - 1, 1, [&] { fold_cut(box, cut, most); });
  }

 private:
  // Calls `use` for each index of the dimensions [from, cut), and so many of `cut` at one time.
  template <class Use>
  void each(Box& box, size_t from, size_t cut, int64_t most, Use&& use) {
    if (from < cut) {
      box.size[from] = 1;
      for (int64_t k = 0; k < sizes_[from]; ++k) {
        box.begin[from] = k;
        each(box, from + 1, cut, most, use);
      }
      return;
    }
    for (int64_t k = 0; k < sizes_[cut]; k += most) {
      box.begin[cut] = k;
      box.size[cut] = std::min(most, sizes_[cut] - k);
      use();
    }
  }

  // The number of the first result of a box.
  int64_t first_of(const Box& box) const {
    int64_t first = 0;
    for (size_t d = 0; d < kept_; ++d) first = first * sizes_[d] + box.begin[d];
    return first;
  }

  Tensor folded(const Tensor& values, int64_t results, std::optional<ScalarType> dtype) const {
    const int64_t row = values.numel() / results;
    static constexpr int64_t kRows = 1;
    const Tensor rows = alias_with_geometry(values, {results, row}, {row, 1}, 0);
    const bool may_choose =
        node_.fold->promote == ReducePromote::Sum || node_.fold->promote == ReducePromote::Float;
    return reduce(*node_.fold, rows, IntList(&kRows, 1), false, may_choose ? dtype : std::nullopt);
  }

  void put(const Tensor& values, int64_t first) const {
    const int64_t item = item_size(node_.dtype);
    std::memcpy(static_cast<char*>(result_->address()) + first * item, values.data(),
                static_cast<size_t>(values.nbytes()));
  }

  void fold(const Box& box) {
    int64_t results = 1;
    for (size_t d = 0; d < kept_; ++d) results *= box.size[d];
    put(folded(evaluation_->run(box), results, node_.dtype), first_of(box));
  }

  // One result.
  void fold_cut(Box& box, size_t cut, int64_t most) {
    std::vector<Tensor> parts;
    each(box, kept_, cut, most,
         [&] { parts.push_back(folded(evaluation_->run(box), 1, node_.compute)); });
    const Tensor all = empty_cpu({static_cast<int64_t>(parts.size())}, parts[0].dtype());
    const int64_t item = all.element_size();
    for (size_t k = 0; k < parts.size(); ++k)
      std::memcpy(static_cast<char*>(all.data()) + static_cast<int64_t>(k) * item, parts[k].data(),
                  static_cast<size_t>(item));
    put(folded(all, 1, node_.dtype), first_of(box));
  }

  const Node& node_;
  const Storage result_;
  DimVector order_, sizes_;
  size_t kept_ = 0;
  std::optional<Evaluation> evaluation_;
};

// A reindex_reduce whose input has been written after all.
void run_reindex_reduce(const Node& node, const Storage& result) {
  using Op = aten::ops::reindex_reduce;
  void* const kernel = Op::op.table().find(kCPU, Layout::Strided, node.dtype);
  reinterpret_cast<Op::Kernel*>(kernel)(tensor_of(node.inputs[0]), node.indexing->how, node.shape,
                                        node.indexing->indices,
                                        tensor_on(result, node.dtype, node.shape, node.strides, 0));
}

// Whether two trees are the same, where `acc` and `x` of one stand for `a` and `b` of the other.
bool is_same(const Expression& step, const ExpressionNode& s, const Expression& combine,
             const ExpressionNode& c) {
  if (s.kind != c.kind || s.child_count != c.child_count || s.integer != c.integer ||
      s.number != c.number) {
    return false;
  }
  std::string_view text = s.text;
  if (s.kind == ExpressionKind::Name) text = text == "acc" ? "a" : text == "x" ? "b" : text;
  if (text != c.text) return false;
  for (int i = 0; i < s.child_count; ++i)
    if (!is_same(step, step.child(s, i), combine, combine.child(c, i))) return false;
  return true;
}

}  // namespace

bool can_cut(const ReduceOp& op) {
  const ReduceExpressions* const parts = op.op->entry().reduce;
  if (parts == nullptr || parts->final) return false;
  return !parts->step ||
         is_same(parts->step, parts->step.root(), parts->combine, parts->combine.root());
}

bool is_product_of_repeated(const PointwiseOp& op, const std::vector<Source>& factors,
                            int64_t products) {
  constexpr int64_t kTimes = 2;
  return op.op == &aten::ops::mul_Tensor::op &&
         std::all_of(factors.begin(), factors.end(), [&](const Source& factor) {
           int64_t elements = 1;
           for (size_t d = 0; d < factor.sizes.size(); ++d)
             if (factor.strides[d] != 0) elements *= factor.sizes[d];
           return elements <= products / kTimes;
         });
}

void run_alone(const Group& group, const Storage& result) {
  // Layers may call Python, which may want the graph.
  const ExcludeLayers all_layers(Layer::Resolve);
  const RunsAtOnce runs_at_once;
  const Node& node = *group.nodes[0];
  const Storage memory = plain_memory(result);
  if (!node.contracts) {
    return cpu::reindex_into(node.indexing->map, tensor_of(node.inputs[0]), node.indexing->filler,
                             tensor_on(memory, node.dtype, node.shape, node.strides, 0));
  }
  if (const auto call = find_kernel(node, group.body)) return run(*call, memory);
  if (node.indexing) return run_reindex_reduce(node, memory);
  Pieces(node, group.body, memory).run();
}

}  // namespace treadle::fusion
