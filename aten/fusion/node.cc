// SPDX-License-Identifier: Apache-2.0
#include "aten/fusion/node.h"

#include "core/base/geometry.h"

namespace treadle::fusion {

Node::~Node() {
  if (!is_computed) pending().remove(*this);
}

bool Source::is_pending() const { return node && !node->is_computed; }
int64_t Source::nbytes() const { return product(sizes) * item_size(dtype); }

int64_t Node::numel() const { return product(shape); }

void Pending::add(Node& node) noexcept {
  node.before = last_;
  (last_ ? last_->after : first_) = &node;
  last_ = &node;
  size_ += node.waits_for_look == 0;
}

void Pending::remove(Node& node) noexcept {
  (node.before ? node.before->after : first_) = node.after;
  (node.after ? node.after->before : last_) = node.before;
  node.before = node.after = nullptr;
  size_ -= node.waits_for_look == 0;
}

Pending& pending() noexcept {
  static constinit Pending all;
  return all;
}

}  // namespace treadle::fusion
