// Finds the kernel for a contraction.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/fusion/kernel_call.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "aten/ops/convolution.h"
#include "aten/ops/mul.h"
#include "aten/ops/sum.h"
#include "core/base/geometry.h"

namespace treadle::fusion {
namespace {

int64_t magnitude(int64_t v) { return v < 0 ? -v : v; }

int64_t reach(const IndexTerm& term, IntList loops) {
  return term.factor * (loops[static_cast<size_t>(term.loop)] - 1);
}

bool is_inside(const IndexAxis& axis, IntList loops) {
  int64_t low = axis.constant, high = axis.constant;
  for (const IndexTerm& term : axis.terms) (term.factor < 0 ? low : high) += reach(term, loops);
  return low >= 0 && high < axis.extent;
}

// ---- tensors ----

// Adds an index that is a loop to what is indexed by it already, as a diagonal is.
void add_plain(Factor& factor, const IndexTerm& term, int64_t stride, IntList loops) {
  for (IndexAxis& axis : factor.axes) {
    if (axis.is_plain && axis.terms[0].loop == term.loop) {
      axis.stride += term.factor * stride;
      return;
    }
  }
  factor.axes.push_back(
      {loops[static_cast<size_t>(term.loop)], term.factor * stride, 0, {{term.loop, 1}}, true});
}

// Makes axes plain: those of one index that is inside, and those whose indices are like digits,
// such as 8 * i + j for a j below 8; of two indices only if asked for, since a convolution may have
// such.
// False for what no kernel has.
bool simplify(Factor& factor, IntList loops, bool splits_pairs) {
  std::vector<IndexAxis> given;
  std::swap(given, factor.axes);
  std::vector<IndexAxis> windows;
  for (IndexAxis& axis : given) {
    auto& terms = axis.terms;
    std::sort(terms.begin(), terms.end(), [](const IndexTerm& a, const IndexTerm& b) {
      return magnitude(a.factor) > magnitude(b.factor);
    });
    if (is_inside(axis, loops)) {
      int64_t rest = 0;
      for (const IndexTerm& term : terms) rest += magnitude(reach(term, loops));
      while (!terms.empty()) {
        rest -= magnitude(reach(terms[0], loops));
        if (magnitude(terms[0].factor) <= rest || (terms.size() == 2 && !splits_pairs)) break;
        add_plain(factor, terms[0], axis.stride, loops);
        terms.erase(terms.begin());
        axis.is_part = true;
      }
      if (terms.empty()) {
        factor.offset += axis.constant * axis.stride;
        continue;
      }
    }
    if (terms.empty() || terms.size() > 2) return false;
    windows.push_back(std::move(axis));
  }
  factor.axes.insert(factor.axes.end(), windows.begin(), windows.end());
  return true;
}

// The tensor that an index map reads or writes, as far as it is a sum.
bool add_axes(Factor& factor, const shape::IndexMap& map, IntList strides) {
  for (size_t d = 0; d < map.functions.size(); ++d) {
    const auto sum = shape::as_linear_sum(map.functions[d], map.loops);
    if (!sum) return false;
    IndexAxis axis{map.extents[d], strides[d], sum->constant, {}, false};
    for (size_t l = 0; l < map.loops.size(); ++l) {
      if (sum->factors[l] != 0 && map.loops[l] > 1)
        axis.terms.push_back({static_cast<int>(l), sum->factors[l]});
    }
    factor.axes.push_back(std::move(axis));
  }
  return true;
}

void add_axes(Factor& factor, IntList loops, IntList strides) {
  for (size_t l = 0; l < loops.size(); ++l) {
    if (loops[l] > 1 && strides[l] != 0)
      factor.axes.push_back({loops[l], strides[l], 0, {{static_cast<int>(l), 1}}, true});
  }
}

bool reads_outside(const shape::IndexMap& map) {
  for (size_t d = 0; d < map.functions.size(); ++d)
    if (!map.functions[d].is_inside(map.extents[d])) return true;
  return false;
}

std::optional<Factor> factor_of(const Source& leaf, IntList loops, bool splits_pairs) {
  Factor factor;
  if (!is_reindexed(leaf)) {
    factor.source = &leaf;
    add_axes(factor, loops, broadcast_strides(loops, leaf.sizes, leaf.strides));
  } else {
    const Indexing& indexing = *leaf.node->indexing;
    factor.source = leaf.node->inputs.data();
    if (!indexing.overflow_value.equal(0) && reads_outside(indexing.map)) return std::nullopt;
    if (!add_axes(factor, indexing.map, factor.source->strides)) return std::nullopt;
  }
  factor.dtype = factor.source->dtype;
  factor.offset = factor.source->offset;
  if (!simplify(factor, loops, splits_pairs)) return std::nullopt;
  return factor;
}

std::optional<Factor> result_of(const Node& contraction, IntList loops, bool splits_pairs) {
  Factor factor;
  factor.dtype = contraction.dtype;
  if (contraction.indexing) {
    if (!add_axes(factor, contraction.indexing->map, contraction.strides)) return std::nullopt;
    if (!simplify(factor, loops, splits_pairs)) return std::nullopt;
    return factor;
  }
  DimVector kept, strides;
  for (size_t l = 0; l < loops.size(); ++l) {
    const bool is_folded = std::find(contraction.folded_dims.begin(), contraction.folded_dims.end(),
                                     static_cast<int64_t>(l)) != contraction.folded_dims.end();
    kept.push_back(is_folded ? 1 : loops[l]);
  }
  strides = contiguous_strides(kept);
  add_axes(factor, kept, strides);
  return factor;
}

// ---- roles ----

// The three tensors of a sum of products.
class Roles {
 public:
  Roles(IntList loops, std::array<Factor, 3> tensors)
      : loops_(loops), tensors_(std::move(tensors)) {}

  std::optional<KernelCall> find() {
    const int input = find_input();
    if (input == kSeveral) return std::nullopt;
    complete(input);
    if (!stays_small()) return std::nullopt;
    if (input < 0) return with_roles(kFirst, kSecond, kResult);
    std::array<int, 2> others{};
    for (int t = 0, k = 0; t < 3; ++t)
      if (t != input) others[static_cast<size_t>(k++)] = t;
    auto call = with_windows(input, others[0], others[1]);
    auto other = with_windows(input, others[1], others[0]);
    if (!call || !other) return std::nullopt;
    // Of the two tensors with the loops of windows, the weight is the smaller one. Where the result
    // is one of them, it is the output unless the other is much larger.
    if (other->kind == KernelCall::Kind::Convolution) std::swap(call, other);
    const int64_t times = call->kind == KernelCall::Kind::Convolution ? kMuchLarger : 1;
    return weight_size(*call) > times * weight_size(*other) ? other : call;
  }

 private:
  static constexpr int kFirst = 0, kSecond = 1, kResult = 2;
  static constexpr int kNone = -1, kSeveral = -2;
  static constexpr int64_t kMuchLarger = 4;

  Factor& tensor(int t) { return tensors_[static_cast<size_t>(t)]; }
  const Factor& tensor(int t) const { return tensors_[static_cast<size_t>(t)]; }

  // The tensor whose indices are not all plain.
  int find_input() const {
    int found = kNone;
    for (int t = 0; t < 3; ++t) {
      const auto& axes = tensor(t).axes;
      if (std::all_of(axes.begin(), axes.end(), [](const auto& a) { return a.is_plain; })) continue;
      if (found != kNone) return kSeveral;
      found = t;
    }
    return found;
  }

  // Repeats a factor along a loop that only one tensor has.
  void complete(int input) {
    for (int l = 0; l < static_cast<int>(loops_.size()); ++l) {
      if (loops_[static_cast<size_t>(l)] == 1) continue;
      const bool first = tensor(kFirst).has(l), second = tensor(kSecond).has(l);
      if (tensor(kResult).has(l)) {
        if (first || second) continue;
        const bool to_first =
            input == kSecond ||
            (input != kFirst && tensor(kFirst).axes.size() <= tensor(kSecond).axes.size());
        repeat(to_first ? kFirst : kSecond, l);
      } else {
        if (!first) repeat(kFirst, l);
        if (!second) repeat(kSecond, l);
      }
    }
  }
  void repeat(int t, int loop) {
    tensor(t).axes.push_back({loops_[static_cast<size_t>(loop)], 0, 0, {{loop, 1}}, true});
  }

  int64_t elements(int t) const {
    int64_t count = 1;
    for (int l = 0; l < static_cast<int>(loops_.size()); ++l)
      if (tensor(t).has(l)) count *= loops_[static_cast<size_t>(l)];
    return count;
  }
  static int64_t memory_of(const Factor& factor) {
    return factor.source ? product(factor.source->sizes) : 0;
  }

  // Repeated factors may be copied.
  bool stays_small() const {
    constexpr int64_t kAlways = int64_t{1} << 16, kTimes = 4;
    const int64_t most = std::max(elements(kResult), kAlways);
    for (const int t : {kFirst, kSecond}) {
      const bool is_repeated = std::any_of(tensor(t).axes.begin(), tensor(t).axes.end(),
                                           [](const auto& a) { return a.stride == 0; });
      if (is_repeated && elements(t) / kTimes > most + memory_of(tensor(0)) + memory_of(tensor(1)))
        return false;
    }
    return true;
  }

  int64_t weight_size(const KernelCall& call) const {
    int64_t size = 1;
    for (const Window& w : call.windows)
      if (w.inner >= 0) size *= loops_[static_cast<size_t>(w.inner)];
    return size;
  }

  std::optional<KernelCall> with_roles(int input, int weight, int output) const {
    KernelCall call;
    call.kind = input == kResult    ? KernelCall::Kind::InputGradient
                : weight == kResult ? KernelCall::Kind::WeightGradient
                                    : KernelCall::Kind::Convolution;
    call.loops = loops_;
    call.input = tensor(input);
    call.weight = tensor(weight);
    call.output = tensor(output);
    if (find_input() == kNone) call.kind = KernelCall::Kind::MatrixProduct;
    for (int l = 0; l < static_cast<int>(loops_.size()); ++l) {
      if (loops_[static_cast<size_t>(l)] == 1 || is_of_window(input, l)) continue;
      const bool i = call.input.has(l), w = call.weight.has(l), o = call.output.has(l);
      if (i + w + o < 2) return std::nullopt;
      (!w ? call.batch : !o ? call.in_channels : !i ? call.out_channels : call.groups).push_back(l);
    }
    return call;
  }

  bool is_of_window(int input, int loop) const {
    for (const IndexAxis& axis : tensor(input).axes) {
      if (axis.is_plain) continue;
      for (const IndexTerm& term : axis.terms)
        if (term.loop == loop) return true;
    }
    return false;
  }

  std::optional<KernelCall> with_windows(int input, int weight, int output) const {
    std::optional<KernelCall> call = with_roles(input, weight, output);
    if (!call) return std::nullopt;
    constexpr size_t kMostWindows = 3;
    std::vector<int> seen;
    for (const IndexAxis& axis : call->input.axes) {
      for (const IndexTerm& term : axis.terms) {
        if (std::find(seen.begin(), seen.end(), term.loop) != seen.end()) return std::nullopt;
        seen.push_back(term.loop);
      }
      if (axis.is_plain) continue;
      const std::optional<Window> window = window_of(axis, call->weight, call->output);
      if (!window || call->windows.size() == kMostWindows) return std::nullopt;
      call->windows.push_back(*window);
    }
    // Kernels write images whose dimensions have the order of the output's loops.
    std::sort(call->windows.begin(), call->windows.end(),
              [](const Window& a, const Window& b) { return a.outer < b.outer; });
    return call;
  }

  std::optional<Window> window_of(const IndexAxis& axis, const Factor& weight,
                                  const Factor& output) const {
    Window w{axis.extent, axis.stride};
    w.is_part = axis.is_part;
    w.low = axis.constant;
    int64_t high = axis.constant;
    for (const IndexTerm& term : axis.terms) {
      const bool is_outer = output.has(term.loop);
      if (is_outer == weight.has(term.loop)) return std::nullopt;
      if ((is_outer ? w.outer : w.inner) >= 0) return std::nullopt;
      (is_outer ? w.outer : w.inner) = term.loop;
      (is_outer ? w.step : w.dilation) = magnitude(term.factor);
      (is_outer ? w.outer_is_flipped : w.inner_is_flipped) = term.factor < 0;
      (term.factor < 0 ? w.low : high) += reach(term, loops_);
    }
    // All of it may be outside.
    if (w.low >= w.extent || high < 0) return std::nullopt;
    return w;
  }

  IntList loops_;
  std::array<Factor, 3> tensors_;
};

bool is_sum(const Node& contraction) {
  if (contraction.indexing) return contraction.indexing->how == "sum";
  return &contraction.op() == &aten::ops::sum::op ||
         &contraction.op() == &aten::ops::sum_dim_IntList::op;
}

}  // namespace

const IndexAxis* Factor::plain_axis(int loop) const {
  for (const IndexAxis& axis : axes)
    if (axis.is_plain && axis.terms[0].loop == loop) return &axis;
  return nullptr;
}

bool Factor::has(int loop) const {
  return std::any_of(axes.begin(), axes.end(), [&](const IndexAxis& axis) {
    return std::any_of(axis.terms.begin(), axis.terms.end(),
                       [&](const IndexTerm& term) { return term.loop == loop; });
  });
}

const char* KernelCall::name() const {
  switch (kind) {
    case Kind::MatrixProduct:
      return "one product of matrices";
    case Kind::Convolution:
      return "one convolution";
    case Kind::WeightGradient:
      return "one gradient of a convolution's weight";
    default:
      return "one gradient of a convolution's input";
  }
}

std::optional<KernelCall> find_kernel(const Node& contraction, const Body& body) {
  if (body.nodes.size() != 1 || body.leaves.size() != 2 || !is_sum(contraction))
    return std::nullopt;
  const Node& products = *body.nodes[0];
  const bool is_of_numbers = is_floating(products.dtype) || is_complex(products.dtype);
  if (&products.op() != &aten::ops::mul_Tensor::op || products.dtype != contraction.dtype ||
      !is_of_numbers) {
    return std::nullopt;
  }
  const IntList loops = products.shape;
  for (const bool splits_pairs : {false, true}) {
    const auto first = factor_of(*body.leaves[0], loops, splits_pairs),
               second = factor_of(*body.leaves[1], loops, splits_pairs),
               result = result_of(contraction, loops, splits_pairs);
    if (!first || !second || !result) continue;
    if (auto call = Roles(loops, {*first, *second, *result}).find()) {
      call->dtype = contraction.dtype;
      return call;
    }
  }
  return std::nullopt;
}

}  // namespace treadle::fusion
