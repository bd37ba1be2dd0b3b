// SPDX-License-Identifier: Apache-2.0
#include "aten/fusion/body.h"

#include <algorithm>

namespace treadle::fusion {
namespace {

class Walk {
 public:
  void add(const Source& source, bool is_first) {
    const Node* const node = source.node.get();
    if (source.is_pending() && source.is_whole && !node->is_needed && node->pointwise != nullptr &&
        (is_first || node->waits_for_look > 0)) {
      add(*node);
    } else {
      body_.leaves.push_back(&source);
    }
  }
  void add(const Node& node) {
    if (std::find(body_.nodes.begin(), body_.nodes.end(), &node) != body_.nodes.end()) return;
    for (const Source& input : node.inputs) add(input, false);
    body_.nodes.push_back(&node);
  }
  Body take() && { return std::move(body_); }

 private:
  Body body_;
};

}  // namespace

std::vector<const Source*> Body::reads() const {
  std::vector<const Source*> found;
  for (const Source* leaf : leaves)
    found.push_back(is_reindexed(*leaf) ? leaf->node->inputs.data() : leaf);
  return found;
}

Body body_of(const Node& contraction) {
  Walk walk;
  walk.add(contraction.inputs[0], true);
  return std::move(walk).take();
}

Body body_from(const Node& folded) {
  Walk walk;
  if (folded.pointwise != nullptr) walk.add(folded);
  return std::move(walk).take();
}

}  // namespace treadle::fusion
