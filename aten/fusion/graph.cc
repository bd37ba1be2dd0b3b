// The graph of pending values: who adds to it, and when it is computed.
//
// Everything that is pending is computed when something looks at any of it: then most of it is
// needed, and what was computed together crosses memory once. If that fails (memory ends), what is
// looked at is computed alone.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <exception>

#include "aten/engine/deferral.h"
#include "aten/fusion/lock.h"
#include "aten/fusion/run.h"

namespace treadle::fusion {
namespace {

// So many nodes are computed without anybody's look: they keep alive what they read.
constexpr int64_t kMostNodes = 256;

// Computes `root` and what it needs; without it, all that can be seen.
void compute(const Node* root) {
  for (const Group& group : partition(root)) run(group);
}

// The sources of a call's node, and whether they allow for waiting.
class Sources {
 public:
  explicit Sources(const CheckedPointwise& call) {
    all_.reserve(call.inputs.size());
    for (const Tensor* t : call.inputs) add(*t, call.shape);
  }
  explicit Sources(const CheckedFold& call) { add(call.input, call.input.sizes()); }

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

template <class Call>
IntrusivePtr<Node> new_node(const Call& call, Sources&& sources) {
  auto node = make_intrusive<Node>();
  pending().add(*node);
  node->compute = call.compute;
  node->dtype = call.result;
  node->shape = call.shape;
  std::move(sources).give_to(*node);
  return node;
}

IntrusivePtr<Node> node_of(const CheckedPointwise& call, Sources&& sources) {
  IntrusivePtr<Node> node = new_node(call, std::move(sources));
  node->pointwise = &call.op;
  node->strides = call.strides;
  std::copy(call.scalars.begin(), call.scalars.end(), node->scalars.begin());
  node->scalar_count = static_cast<int>(call.scalars.size());
  return node;
}

IntrusivePtr<Node> node_of(const CheckedFold& call, Sources&& sources) {
  IntrusivePtr<Node> node = new_node(call, std::move(sources));
  node->fold = &call.op;
  node->strides = contiguous_strides(call.shape);
  node->row = call.row;
  node->folded_dims = call.dims;
  node->keepdim = call.keepdim;
  return node;
}

// Gives those who go on waiting, and read the storage, a copy of its bytes, which others may now
// write.
void copy_for_readers(const StorageImpl& storage) {
  Storage copy;
  const auto replace = [&](Storage& read) {
    if (read.get() != &storage) return;
    if (!copy) {
      copy = make_intrusive<StorageImpl>(storage.nbytes(), kCPU);
      std::memcpy(copy->address(), storage.address(), storage.nbytes());
    }
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
  Tensor pointwise(const CheckedPointwise& call) override { return defer(call); }
  Tensor fold(const CheckedFold& call) override {
    // The fold of all elements of what is in memory gains nothing.
    if (call.row > CheckedFold::kLongestRow && !call.input.storage()->needs_care()) return {};
    return defer(call);
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
      compute(nullptr);
    } catch (const std::exception&) {
      // The error is for those who look at the value that failed.
      if (const Node* const node = pending_node(storage)) compute(node);
      copy_for_readers(storage);
    }
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

  template <class Call>
  static Tensor defer(const Call& call) {
    const Lock lock;
    Sources sources(call);
    if (!lock.is_outermost() || !sources.may_wait()) return {};
    const bool runs_soon = sources.must_run_soon();
    IntrusivePtr<Node> node = node_of(call, std::move(sources));
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
        compute(nullptr);
      } catch (const std::exception&) {
        // The error is for those who look at the value that failed, not for this call.
        compute(&node);
      }
    }
  }
};

[[maybe_unused]] const bool installed = [] {
  static Graph graph;
  set_deferral(&graph);
  set_pending_values(&graph);
  return true;
}();

}  // namespace
}  // namespace treadle::fusion
