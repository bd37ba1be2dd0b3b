// The state of anomaly mode, and the search for NaN.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/graph/anomaly.h"

#include "aten/ops/any.h"
#include "aten/ops/isnan.h"
#include "aten/ops/item.h"
#include "autograd/meta.h"

namespace treadle::autograd {

std::atomic<bool> watching_nodes{false};

namespace {

std::atomic<bool> checking_nan{true};
std::atomic<AnomalyObserver*> observer{nullptr};
thread_local constinit Node* evaluated __attribute__((tls_model("initial-exec"))) = nullptr;

}  // namespace

AnomalyMode anomaly_mode() { return {watching_nodes.load(), checking_nan.load()}; }

void set_anomaly_mode(AnomalyMode mode) {
  watching_nodes = mode.enabled;
  checking_nan = mode.check_nan;
}

void set_anomaly_observer(AnomalyObserver* given) { observer = given; }

void Node::observe_creation() {
  if (AnomalyObserver* o = observer.load()) o->created(*this, evaluated);
}

namespace detail {

Evaluated::Evaluated(Node& node) : outer_(evaluated) { evaluated = &node; }
Evaluated::~Evaluated() { evaluated = outer_; }

void report_failure(const Node& node) {
  if (AnomalyObserver* o = observer.load()) o->failed(node);
}

void check_gradients(const Node& node, const Grads& grads) {
  if (!checking_nan) return;
  const NoGrad no_grad;
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined() || !is_differentiable(grads[i].dtype()) || grads[i].is_meta()) continue;
    check<ErrorKind::Runtime>(!aten::item(aten::any(aten::isnan(grads[i]))).to<bool>(),
                              "Function '", node.name(), "' returned nan values in its ", i,
                              "th output");
  }
}

}  // namespace detail
}  // namespace treadle::autograd
