// SPDX-License-Identifier: Apache-2.0
#include "aten/fusion/run.h"

#include <deque>
#include <span>

#include "aten/engine/cpu/program.h"
#include "aten/engine/cpu/tiles.h"
#include "aten/engine/loop_geometry.h"
#include "aten/engine/promotion.h"
#include "aten/fusion/compiled.h"
#include "aten/fusion/contraction.h"
#include "aten/fusion/fused_loop.h"
#include "aten/fusion/step.h"

namespace treadle::fusion {
namespace {

using Nodes = std::span<Node* const>;

// A source that a program reads from memory, for elements or for rows.
struct Operand {
  const Source* source;
  const Node* reader;  // the first one
  bool is_of_rows;

  simd::Extent extent() const { return is_of_rows ? simd::Extent::Rows : simd::Extent::Elements; }
};

// The program of some nodes of a group, and its operands.
class Lowering {
 public:
  Lowering(const Group& group, Nodes nodes) : group_(group), nodes_(nodes) { find_reads(); }
  ~Lowering() {
    for (Node* node : nodes_) node->value = -1;
  }

  size_t operands() const {
    size_t count = reads_.size();
    for (const Node* node : nodes_) count += node->is_written() && !node->is_total();
    return count;
  }

  void run(ArrayRef<Storage> results) {
    program_.set_row(group_.row);
    for (const Operand& read : reads_) program_.read(read.source->dtype, read.extent());
    if (is_compiling() && nodes_.size() > 1)
      for (const LoopNodes& loop : cut_into_loops(group_, nodes_)) add(loop);
    else
      for (Node* node : nodes_) add(*node);
    for (const Node* node : nodes_)
      if (node->is_written() && !node->is_total()) program_.write(node->value);
    add_totals(results);
    place(results);
    if (is_one_call()) return run_alone(program_.steps()[0]);
    const IntList rows = group_.rows();
    static constexpr int64_t kOne = 1;
    simd::run_program(program_, {operands_.data(), operands_.size()}, shape_,
                      rows.empty() ? IntList(&kOne, 1) : rows);
  }

 private:
  // Whether the source is computed by the program: its node has a number, or the mark of one that
  // will have one.
  bool has(const Node& node, const Source& source) const {
    return source.node && source.node->value != -1 && group_.has_inside(node, source);
  }

  void find_reads() {
    for (Node* node : nodes_) {
      for (const Source& source : node->inputs) {
        if (!has(*node, source) && place_of(*node, source) < 0)
          reads_.push_back({&source, node, reads_for_rows(*node, group_)});
      }
      node->value = kInside;
    }
  }
  int place_of(const Node& node, const Source& source) const {
    const bool of_rows = reads_for_rows(node, group_);
    for (size_t r = 0; r < reads_.size(); ++r)
      if (reads_[r].is_of_rows == of_rows && is_same_memory(*reads_[r].source, source))
        return static_cast<int>(r);
    return -1;
  }

  int number_of(const Node& node, const Source& source) const {
    return has(node, source) ? source.node->value : place_of(node, source);
  }

  void add(Node& node) {
    if (node.is_total()) return;
    simd::ProgramStep step{};
    if (node.fold != nullptr) {
      step.compute = node.compute;
      step.fold = &node.fold->cpu_blocks().by_dtype[static_cast<size_t>(node.compute)];
      step.results[0] = {node.compute, node.dtype};
    } else {
      step = pointwise_step(node);
    }
    step.extent = group_.is_of_rows(node) ? simd::Extent::Rows : simd::Extent::Elements;
    for (const Source& source : node.inputs)
      step.inputs[static_cast<size_t>(step.input_count++)] = number_of(node, source);
    node.value = program_.add(step);
  }

  // A loop that was compiled is one step, another one a step for each node.
  void add(const LoopNodes& loop) {
    if (!add_compiled(loop))
      for (Node* node : loop.nodes) add(*node);
  }
  bool add_compiled(const LoopNodes& loop) {
    using simd::ProgramStep;
    if (!loop.is_pointwise || loop.nodes.size() < 2) return false;
    if (loop.results.size() > ProgramStep::kMaxResults) return false;
    FusedLoop fused = fuse(group_, loop, [this](const Node& reader, const Source& source) {
      return number_of(reader, source);
    });
    if (fused.inputs.size() > ProgramStep::kMaxInputs) return false;
    void* const function = find_compiled(fused.source);
    if (function == nullptr) return false;
    const Node& first = *loop.nodes[0];
    ProgramStep step{};
    step.compute = first.compute;
    if (loop.results.size() == 1)
      step.block = reinterpret_cast<simd::PointwiseBlock*>(function);
    else
      step.fused = reinterpret_cast<simd::FusedBlock*>(function);
    std::copy(fused.inputs.begin(), fused.inputs.end(), step.inputs.begin());
    step.input_count = static_cast<int>(fused.inputs.size());
    step.result_count = 0;
    for (const Node* node : loop.results)
      step.results[static_cast<size_t>(step.result_count++)] = {compute_of(node->dtype),
                                                                node->dtype, true};
    numbers_.push_back(std::move(fused.scalars));
    step.scalars = numbers_.back().data();
    step.extent = group_.is_of_rows(first) ? simd::Extent::Rows : simd::Extent::Elements;
    int value = program_.add(step);
    for (Node* node : loop.results) node->value = value++;
    return true;
  }

  void add_totals(ArrayRef<Storage> results) {
    size_t next = 0;
    for (const Node* node : nodes_) {
      if (!node->is_written()) continue;
      const Storage& result = results[next++];
      if (!node->is_total()) continue;
      const Source& source = node->inputs[0];
      program_.total({number_of(*node, source),
                      &node->fold->cpu_blocks().by_dtype[static_cast<size_t>(node->compute)],
                      node->dtype, result->address()});
    }
  }

  // One loop with one result runs as an operator alone does, without tiles.
  bool is_one_call() const {
    if (program_.steps().size() != 1 || !program_.totals().empty() || group_.row != 0) return false;
    const simd::ProgramStep& step = program_.steps()[0];
    return step.block != nullptr && step.input_count <= kMaxPointwiseInputs;
  }
  void run_alone(const simd::ProgramStep& step) const {
    simd::PointwiseBlocks blocks;
    blocks.by_dtype[static_cast<size_t>(step.compute)] = step.block;
    blocks.bool_result = step.results[0].written == ScalarType::Bool;
    const auto is_direct = [&](const PointwiseOperand& o, ScalarType type) {
      return o.dtype == type && shape_.size() == 1 && o.strides[0] == item_size(type);
    };
    PointwiseCall call{};
    call.out = operands_.back();
    call.direct = is_direct(call.out, step.results[0].written);
    for (size_t k = 0; k < static_cast<size_t>(step.input_count); ++k) {
      call.in[k] = operands_[static_cast<size_t>(step.inputs[k])];
      call.direct = call.direct && is_direct(call.in[k], step.compute);
    }
    call.shape = shape_.data();
    call.dims = static_cast<int>(shape_.size());
    call.inputs = step.input_count;
    call.scalars = step.scalars;
    call.compute = step.compute;
    call.numel = product(shape_);
    simd::run_blocks(call, blocks);
  }

  // The operands over the shape, results first: where nothing is of rows, in the order in which
  // memory lies.
  void place(ArrayRef<Storage> results) {
    const size_t written = operands() - reads_.size();
    strides_.resize(operands());
    operands_.resize(strides_.size());
    size_t next = 0, result = 0;
    for (const Node* node : nodes_) {
      if (!node->is_written()) continue;
      const Storage& storage = results[result++];
      if (node->is_total()) continue;
      const bool of_rows = group_.is_of_rows(*node);
      add(next, storage, 0, of_rows ? IntList(node->shape) : IntList(group_.shape), node->shape,
          node->strides, node->dtype, of_rows, reads_.size() + next);
      ++next;
    }
    for (size_t r = 0; r < reads_.size(); ++r) {
      const Source& s = *reads_[r].source;
      const bool of_rows = reads_[r].is_of_rows;
      add(written + r, s.node ? s.node->memory : s.storage, s.offset,
          of_rows ? IntList(reads_[r].reader->shape) : IntList(group_.shape), s.sizes, s.strides,
          s.dtype, of_rows, r);
    }
    shape_ = group_.shape;
    if (group_.row == 0 && !group_.has_totals)
      order_dimensions(shape_, strides_.data(), static_cast<int>(strides_.size()));
    if (shape_.empty()) shape_.push_back(1);
    for (size_t k = 0; k < strides_.size(); ++k)
      operands_[k < written ? reads_.size() + k : k - written].strides = strides_[k].data();
  }

  void add(size_t at, const Storage& storage, int64_t offset, IntList shape, IntList sizes,
           IntList strides, ScalarType dtype, bool of_rows, size_t operand) {
    const int64_t item = item_size(dtype);
    DimVector& s = strides_[at];
    s = broadcast_strides(shape, sizes, strides);
    // An operand of rows may have dimensions of 1 for those that were folded.
    if (of_rows) s.resize(group_.rows().size());
    if (s.empty()) s.push_back(0);
    for (int64_t& stride : s) stride *= item;
    operands_[operand] = {static_cast<char*>(storage->address()) + offset * item, nullptr, dtype};
  }

  static constexpr int kInside = -2;  // a node of this program whose number is not known yet

  const Group& group_;
  Nodes nodes_;
  std::vector<Operand> reads_;
  simd::Program program_;
  std::deque<std::vector<Scalar>> numbers_;  // of compiled loops
  DimVector shape_;
  std::vector<DimVector> strides_;  // in bytes: of the results, then of what is read
  std::vector<PointwiseOperand> operands_;
};

// The memory of the results of a group until they are there.
class Results {
 public:
  explicit Results(Nodes nodes) {
    try {
      for (Node* node : nodes) {
        if (!node->is_written()) continue;
        if (node->target == nullptr) {
          storages_.push_back(
              make_intrusive<StorageImpl>(static_cast<size_t>(node->nbytes()), kCPU));
          continue;
        }
        storages_.emplace_back(node->target);
        node->target->allocate_pending();
      }
    } catch (...) {
      take_back();
      throw;
    }
  }
  ~Results() {
    if (!are_there_) take_back();
  }
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;

  ArrayRef<Storage> storages() const { return {storages_.data(), storages_.size()}; }

  void hand_over(Nodes nodes) noexcept {
    are_there_ = true;
    size_t next = 0;
    for (Node* node : nodes) {
      if (node->is_written()) node->memory = storages_[next++];
      node->is_computed = true;
      pending().remove(*node);
      StorageImpl* const target = std::exchange(node->target, nullptr);
      node->inputs.clear();
      if (target == nullptr) continue;
      // Nodes that are not computed yet go on reading its bytes.
      if (node->is_read_outside) target->set_read_by_pending(true);
      if (const Storage lent = std::move(node->lent)) target->take_back(*lent);
      target->arrive();
    }
  }

 private:
  void take_back() noexcept {
    for (const Storage& storage : storages_)
      if (storage->pending() != nullptr) storage->deallocate_pending();
  }

  std::vector<Storage> storages_;
  bool are_there_ = false;
};

void run(const Group& group, Nodes nodes) {
  {
    Lowering lowering(group, nodes);
    if (lowering.operands() <= simd::Tiles::kMaxOperands) {
      Results results(nodes);
      lowering.run(results.storages());
      results.hand_over(nodes);
      return;
    }
  }
  // Too many operands for one pass over tiles: two passes, between which values go to memory.
  const Nodes first = nodes.first(nodes.size() / 2), second = nodes.subspan(first.size());
  for (const Node* node : second)
    for (const Source& source : node->inputs)
      if (source.node) source.node->is_read_outside = true;
  run(group, first);
  run(group, second);
}

}  // namespace

void run(const Group& group) {
  // Storages and readers let the nodes go as they get their bytes.
  std::vector<IntrusivePtr<Node>> kept;
  for (Node* node : group.nodes) kept.emplace_back(node);
  const Nodes nodes(group.nodes);
  if (!group.is_alone()) return run(group, nodes);
  Results results(nodes);
  run_alone(group, results.storages()[0]);
  results.hand_over(nodes);
}

}  // namespace treadle::fusion
