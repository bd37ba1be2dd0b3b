// The graph of pending values: who adds to it, and when it is computed.
//
// Everything that is pending is computed when something looks at any of it: then most of it is
// needed, and what was computed together crosses memory once. If that fails (memory ends), what is
// looked at is computed alone.
//
// The result of a reindex is larger than what it reads, and often nobody looks at it: a fold of it
// computes it piece by piece. So it waits for a look at itself, as do what is computed from it
// element by element, and products of repeated factors. If what it reads is written before, it goes
// on with a copy.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <exception>

#include "aten/engine/contraction.h"
#include "aten/engine/deferral.h"
#include "aten/fusion/contraction.h"
#include "aten/fusion/lock.h"
#include "aten/fusion/run.h"
#include "aten/ops/indexing/cpu/reindex.h"
#include "aten/ops/reindex.h"
#include "aten/ops/reindex_reduce.h"

namespace treadle::fusion {
namespace {

// So many nodes are computed without anybody's look: they keep alive what they read.
constexpr int64_t kMostNodes = 256;

// So many steps from a reindex wait for a look.
constexpr int kMostStepsFromReindex = 8;

// A reindex waits if its result has so many times the elements of what it reads.
constexpr int64_t kLeastGrowth = 2;

// Computes `root` and what it needs.
void compute(const Node* root) {
  for (const Group& group : partition(root, false)) run(group);
}
// Computes all that can be seen, and `root`, which may be null.
void compute_all(const Node* root) {
  for (const Group& group : partition(root, true)) run(group);
}

Storage copy_of(const StorageImpl& storage) {
  auto copy = make_intrusive<StorageImpl>(storage.nbytes(), kCPU);
  std::memcpy(copy->address(), storage.address(), storage.nbytes());
  return copy;
}

// The node whose whole result the tensor is; null where it is another tensor.
Node* whole_node(const Tensor& t) {
  Node* const node = t.storage() ? pending_node(*t.storage()) : nullptr;
  const bool is_whole = node != nullptr && t.dtype() == node->dtype &&
                        t.sizes() == IntList(node->shape) &&
                        t.strides() == IntList(node->strides) && t.storage_offset() == 0;
  return is_whole ? node : nullptr;
}

// The sources of a call's node, and whether they allow for waiting.
class Sources {
 public:
  explicit Sources(const CheckedPointwise& call) {
    all_.reserve(call.inputs.size());
    for (const Tensor* t : call.inputs) add(*t, call.shape);
  }
  explicit Sources(const CheckedFold& call) : Sources(call.input) {}
  // Of a call that reads one tensor.
  explicit Sources(const Tensor& input) { add(input, input.sizes()); }

  bool may_wait() const { return is_known_ && (!changes_unseen_ || reads_pending_); }
  // Whether each source of the node is its whole result.
  bool reads_whole(const Node& node) const {
    return std::all_of(all_.begin(), all_.end(), [&](const Source& source) {
      return source.node.get() != &node || source.is_whole;
    });
  }
  // Whether each source in the memory of a tensor is all of the tensor.
  bool reads_whole(const Tensor& t) const {
    return std::all_of(all_.begin(), all_.end(), [&](const Source& source) {
      return source.storage != t.storage() ||
             (source.dtype == t.dtype() && IntList(source.sizes) == t.sizes() &&
              IntList(source.strides) == t.strides() && source.offset == t.storage_offset());
    });
  }
  // Somebody may write what is read, and no operator would tell.
  bool must_run_soon() const { return changes_unseen_; }
  // In how many steps what is read was computed from a reindex; 0 where it was not.
  int steps_from_reindex() const {
    int most = 0;
    for (const Source& source : all_)
      if (source.is_pending() && source.is_whole)
        most = std::max(most, source.node->waits_for_look);
    return most;
  }
  bool are_repeated_factors(const CheckedPointwise& call) const {
    return is_product_of_repeated(call.op, all_, product(call.shape));
  }
  // Reads copies of what others may write, where each is of at most so many bytes.
  void copy_what_changes(int64_t most) {
    for (const Source& source : all_)
      if (source.storage && static_cast<int64_t>(source.storage->nbytes()) > most) return;
    for (Source& source : all_) {
      if (source.storage && source.storage->may_change_unseen())
        source.storage = copy_of(*source.storage);
    }
    changes_unseen_ = false;
  }

  void give_to(Node& node) && {
    for (const Source& source : all_)
      if (source.storage) source.storage->set_read_by_pending(true);
    node.inputs = std::move(all_);
  }

 private:
  void add(const Tensor& t, IntList shape) {
    const Storage& storage = t.storage();
    if (!t.is_cpu() || !storage->has_memory() || !t.impl()->is_inside()) {
      is_known_ = false;
      return;
    }
    Source& source = all_.emplace_back();
    source.dtype = t.dtype();
    source.sizes = t.sizes();
    source.strides = t.strides();
    source.offset = t.storage_offset();
    if (Node* const node = pending_node(*storage)) {
      source.node = IntrusivePtr<Node>(node);
      source.is_whole = t.dtype() == node->dtype && t.sizes() == IntList(node->shape) &&
                        t.sizes() == shape && t.strides() == IntList(node->strides) &&
                        t.storage_offset() == 0;
      reads_pending_ = true;
    } else {
      source.storage = storage;
      changes_unseen_ = changes_unseen_ || storage->may_change_unseen();
    }
  }

  std::vector<Source> all_;
  bool is_known_ = true;
  bool changes_unseen_ = false;
  bool reads_pending_ = false;
};

IntrusivePtr<Node> new_node(ScalarType compute, ScalarType dtype, IntList shape, Sources&& sources,
                            int waits_for_look = 0) {
  auto node = make_intrusive<Node>();
  node->waits_for_look = waits_for_look;
  pending().add(*node);
  node->compute = compute;
  node->dtype = dtype;
  node->shape = shape;
  std::move(sources).give_to(*node);
  return node;
}
template <class Call>
IntrusivePtr<Node> new_node(const Call& call, Sources&& sources, int waits_for_look = 0) {
  return new_node(call.compute, call.result, call.shape, std::move(sources), waits_for_look);
}

IntrusivePtr<Node> node_of(const CheckedPointwise& call, Sources&& sources) {
  const int steps = sources.steps_from_reindex();
  int waits = steps > 0 && steps < kMostStepsFromReindex ? steps + 1 : 0;
  // Results computed from such products do not wait as the products do.
  if (sources.are_repeated_factors(call)) waits = kMostStepsFromReindex;
  IntrusivePtr<Node> node = new_node(call, std::move(sources), waits);
  node->pointwise = &call.op;
  node->strides = call.strides;
  std::copy(call.scalars.begin(), call.scalars.end(), node->scalars.begin());
  node->scalar_count = static_cast<int>(call.scalars.size());
  return node;
}

// The node of a fold, or of a contraction.
template <class Call>
IntrusivePtr<Node> fold_node(const Call& call, Sources&& sources) {
  IntrusivePtr<Node> node = new_node(call, std::move(sources));
  node->fold = &call.op;
  node->strides = contiguous_strides(call.shape);
  node->folded_dims = call.dims;
  node->keepdim = call.keepdim;
  return node;
}

IntrusivePtr<Node> node_of(const CheckedContraction& call, Sources&& sources) {
  IntrusivePtr<Node> node = fold_node(call, std::move(sources));
  node->contracts = true;
  return node;
}

IntrusivePtr<Node> node_of(const CheckedFold& call, Sources&& sources) {
  IntrusivePtr<Node> node = fold_node(call, std::move(sources));
  node->row = call.row;
  return node;
}

// Gives those who go on waiting, and read the storage, a copy of its bytes, which others may now
// write.
void copy_for_readers(const StorageImpl& storage) {
  Storage copy;
  const auto replace = [&](Storage& read) {
    if (read.get() != &storage) return;
    if (!copy) copy = copy_of(storage);
    read = copy;
  };
  for (Node* node = pending().oldest(); node != nullptr; node = node->after) {
    for (Source& source : node->inputs) {
      replace(source.storage);
      if (source.node) replace(source.node->memory);
    }
  }
}

// Whether pending nodes read the storage.
bool is_read(const StorageImpl& storage) {
  for (const Node* node = pending().oldest(); node != nullptr; node = node->after) {
    for (const Source& source : node->inputs)
      if (source.storage.get() == &storage ||
          (source.node && source.node->memory.get() == &storage))
        return true;
  }
  return false;
}

class Graph final : public Deferral, public PendingValues {
 public:
  Tensor pointwise(const CheckedPointwise& call) override {
    const Lock lock;
    return defer(lock, call, Sources(call));
  }
  Tensor fold(const CheckedFold& call) override {
    // The fold of all elements of what is in memory gains nothing.
    if (call.row > CheckedFold::kLongestRow && !call.input.storage()->needs_care()) return {};
    const Lock lock;
    return defer(lock, call, Sources(call));
  }
  Tensor contract(const CheckedContraction& call) {
    const Lock lock;
    const Node* const folded = whole_node(call.input);
    if (folded == nullptr || !folds_unwritten(*folded, call)) return {};
    return defer(lock, call, Sources(call.input));
  }
  Tensor index(const Tensor& input, ScalarType dtype, IntList shape,
               std::unique_ptr<const Indexing> indexing, bool contracts) {
    const Lock lock;
    Sources sources(input);
    if (contracts && whole_node(input) == nullptr) return {};
    sources.copy_what_changes(product(shape) * item_size(dtype));
    if (!lock.is_outermost() || !sources.may_wait()) return {};
    IntrusivePtr<Node> node = new_node(dtype, dtype, shape, std::move(sources), contracts ? 0 : 1);
    node->strides = contiguous_strides(shape);
    node->indexing = std::move(indexing);
    node->contracts = contracts;
    if (contracts && !(body_of(*node).fits() && find_kernel(*node, body_of(*node)))) return {};
    return result_of(std::move(node), false);
  }

  bool pointwise_inplace(const CheckedPointwise& call) override {
    const Lock lock;
    const Tensor& self = *call.inputs[0];
    StorageImpl& storage = *self.storage();
    Node* const former = pending_node(storage);
    if (!lock.is_outermost() || call.result != self.dtype() || !storage.writable()) return false;
    Sources sources(call);
    if (!sources.may_wait() || sources.must_run_soon()) return false;
    if (former == nullptr) return wait_in_place(call, std::move(sources));
    if (former->target != &storage || !sources.reads_whole(*former)) return false;
    IntrusivePtr<Node> node = node_of(call, std::move(sources));
    former->target = nullptr;
    node->target = &storage;
    node->lent = std::move(former->lent);
    storage.set_pending(node);
    return true;
  }

  void settle(StorageImpl& storage) override {
    const Lock lock;
    // A node that is being computed reads and writes addresses alone.
    if (!lock.is_outermost()) return;
    try {
      compute_all(pending_node(storage));
    } catch (const std::exception&) {
      // The error is for those who look at the value that failed.
      if (const Node* const node = pending_node(storage)) compute(node);
    }
    copy_for_readers(storage);
    storage.set_read_by_pending(false);
  }

  bool forget(StorageImpl& storage) noexcept override {
    const Lock lock;
    if (storage.use_count() > 1) return false;
    if (Node* const node = pending_node(storage)) {
      node->target = nullptr;
      node->lent.reset();
      storage.set_pending(nullptr);
    }
    return true;
  }

 private:
  // The call writes all bytes of a storage, and nobody else waits to read them.
  static bool wait_in_place(const CheckedPointwise& call, Sources&& sources) {
    const Tensor& self = *call.inputs[0];
    StorageImpl& storage = *self.storage();
    if (!self.is_contiguous() || self.storage_offset() != 0 ||
        static_cast<size_t>(self.nbytes()) != storage.nbytes() || storage.may_change_unseen() ||
        is_read(storage) || !sources.reads_whole(self)) {
      return false;
    }
    IntrusivePtr<Node> node = node_of(call, std::move(sources));
    node->lent = storage.lend(node);
    node->target = &storage;
    for (Source& source : node->inputs)
      if (source.storage.get() == &storage) source.storage = node->lent;
    storage.set_read_by_pending(false);
    return true;
  }

  // Whether the fold is of what a reindex reads, which is better not written. Other products keep
  // the order of their sum.
  static bool folds_unwritten(const Node& folded, const CheckedContraction& call) {
    const bool is_of_products =
        folded.pointwise != nullptr &&
        is_product_of_repeated(*folded.pointwise, folded.inputs, folded.numel());
    if (is_of_products || folded.waits_for_look == 0) return false;
    if (!can_cut(call.op) &&
        product(folded.shape) / std::max<int64_t>(1, product(call.shape)) > kLargestPiece) {
      return false;
    }
    return body_from(folded).fits();
  }

  template <class Call>
  static Tensor defer(const Lock& lock, const Call& call, Sources&& sources) {
    if (sources.steps_from_reindex() > 0)
      sources.copy_what_changes(product(call.shape) * item_size(call.result));
    if (!lock.is_outermost() || !sources.may_wait()) return {};
    const bool runs_soon = sources.must_run_soon();
    IntrusivePtr<Node> node = node_of(call, std::move(sources));
    return result_of(std::move(node), runs_soon);
  }

  static Tensor result_of(IntrusivePtr<Node> node, bool runs_soon) {
    Storage storage = StorageImpl::awaiting(static_cast<size_t>(node->nbytes()), node);
    node->target = storage.get();
    Tensor result(
        make_intrusive<TensorImpl>(std::move(storage), node->dtype, node->shape, node->strides, 0));
    finish(runs_soon, *node);
    return result;
  }

  static void finish(bool runs_soon, const Node& node) {
    if (runs_soon) {
      compute(&node);
    } else if (pending().size() > kMostNodes) {
      try {
        compute_all(nullptr);
      } catch (const std::exception&) {
        // The error is for those who look at the value that failed, not for this call.
        compute(&node);
      }
    }
  }
};

Graph& graph() {
  static Graph graph;
  return graph;
}

[[maybe_unused]] const bool installed = [] {
  set_deferral(&graph());
  set_pending_values(&graph());
  return true;
}();

// Whether the elements of a map are found without an error.
bool divides_by_no_zero(const shape::IndexMap& map) {
  return std::all_of(map.functions.begin(), map.functions.end(), [](const auto& function) {
    return std::all_of(function.nodes.begin(), function.nodes.end(),
                       [](const auto& node) { return node.divisor.empty(); });
  });
}

}  // namespace
}  // namespace treadle::fusion

namespace treadle {

Tensor defer_contraction(const CheckedContraction& call) { return fusion::graph().contract(call); }

namespace waiting {

Tensor reindex(const Tensor& self, IntList shape, std::string_view indices,
               const Scalar& overflow_value) {
  const int64_t numel = product(shape);
  if (!self.is_cpu() || numel < std::max<int64_t>(1, least_deferred()) ||
      numel / fusion::kLeastGrowth < self.numel()) {
    return {};
  }
  auto indexing = std::make_unique<fusion::Indexing>();
  indexing->op = &aten::ops::reindex::op;
  indexing->map = shape::index_map("reindex", indices, shape, self.sizes(), "x");
  if (!fusion::divides_by_no_zero(indexing->map)) return {};
  indexing->indices = indices;
  indexing->overflow_value = overflow_value;
  indexing->filler = cpu::reindex_filler(overflow_value, self.dtype());
  return fusion::graph().index(self, self.dtype(), shape, std::move(indexing), false);
}

// Only what a kernel of the library computes waits: the gradient of a convolution.
Tensor reindex_reduce(const Tensor& self, std::string_view how, IntList shape,
                      std::string_view indices) {
  if (!self.is_cpu() || how != "sum" || product(shape) == 0 || self.numel() < least_deferred() ||
      !self.storage()->needs_care()) {
    return {};
  }
  auto indexing = std::make_unique<fusion::Indexing>();
  indexing->op = &aten::ops::reindex_reduce::op;
  indexing->map = shape::index_map("reindex_reduce", indices, self.sizes(), shape, "the result");
  if (!fusion::divides_by_no_zero(indexing->map)) return {};
  indexing->indices = indices;
  indexing->how = how;
  return fusion::graph().index(self, self.dtype(), shape, std::move(indexing), true);
}

}  // namespace waiting
}  // namespace treadle
