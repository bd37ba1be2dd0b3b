// Anomaly mode. Every node remembers where it was made. A backward that fails or yields NaN reports
// that location.
//
// The observer decides what is remembered (the Python stack). Without an observer, backward only
// looks for NaN.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "autograd/graph/node.h"

namespace treadle::autograd {

class AnomalyObserver {
 public:
  virtual ~AnomalyObserver() = default;
  // A node was made, in the backward of `parent` or, if null, outside of one. It may throw.
  virtual void created(Node& node, Node* parent) = 0;
  // The backward of `node` threw an exception. The exception continues unless this function throws
  // another.
  virtual void failed(const Node& node) = 0;
};

struct AnomalyMode {
  bool enabled = false;
  bool check_nan = true;
};
// For the whole process, because a backward may run on any thread.
AnomalyMode anomaly_mode();
void set_anomaly_mode(AnomalyMode mode);
// The observer lives as long as the process.
void set_anomaly_observer(AnomalyObserver* observer);

// Runs `apply`, which computes the gradients of `node`, and checks the result.
template <class F>
Grads watch(Node& node, F&& apply);

namespace detail {
class Evaluated {
 public:
  explicit Evaluated(Node& node);
  ~Evaluated();
  Evaluated(const Evaluated&) = delete;
  Evaluated& operator=(const Evaluated&) = delete;

 private:
  Node* outer_;
};
void report_failure(const Node& node);
// RuntimeError for a NaN if the mode asks for that check.
void check_gradients(const Node& node, const Grads& grads);
}  // namespace detail

template <class F>
Grads watch(Node& node, F&& apply) {
  const detail::Evaluated scope(node);
  try {
    Grads grads = apply();
    detail::check_gradients(node, grads);
    return grads;
  } catch (...) {
    detail::report_failure(node);
    throw;
  }
}

}  // namespace treadle::autograd
