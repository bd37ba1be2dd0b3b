// Deferral: a call whose arguments were checked may be handed over instead of being run.
// Its result is then computed when something looks at it (aten/fusion/).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <limits>
#include <optional>

#include "aten/engine/pointwise.h"
#include "aten/engine/reduce.h"

namespace treadle {

// A call on the CPU, with all that running it needs. `shape` is that of the result, to which the
// inputs broadcast, and has elements.
struct CheckedPointwise {
  const PointwiseOp& op;
  ScalarType compute, result;
  TensorRefs inputs;
  ArrayRef<Scalar> scalars;
  IntList shape, strides;  // of the result
};

// The same of a reduction over the last dimensions of an input whose elements lie in order: a fold
// of its rows. A row that is too long for a tile is all elements.
struct CheckedFold {
  static constexpr int64_t kLongestRow = 4096;

  const ReduceOp& op;
  ScalarType compute, result;
  const Tensor& input;
  IntList shape;  // of the result
  int64_t row;    // elements folded into each of its elements
  // The other arguments, for who prints the call.
  IntList dims;
  bool keepdim;
};

class Deferral {
 public:
  virtual ~Deferral() = default;
  // The result, which is pending; undefined where the call must run now.
  virtual Tensor pointwise(const CheckedPointwise& call) = 0;
  // The call writes its first input. False where it must run now.
  virtual bool pointwise_inplace(const CheckedPointwise& call) = 0;
  virtual Tensor fold(const CheckedFold& call) = 0;
};

inline constexpr int64_t kDeferNever = std::numeric_limits<int64_t>::max();

namespace detail {
// How many modes defer at all.
inline constinit std::atomic<int> deferring{0};
int64_t least_deferred_here() noexcept;
}  // namespace detail

// The least number of elements of a result for which this thread's calls are deferred.
inline int64_t least_deferred() noexcept {
  if (detail::deferring.load(std::memory_order_relaxed) == 0) [[likely]]
    return kDeferNever;
  return detail::least_deferred_here();
}

// The modes: of this thread, which has none of its own where it is absent, and of all threads that
// have none. Each is the least number of elements, or kDeferNever.
void set_deferral_here(std::optional<int64_t> least) noexcept;
std::optional<int64_t> deferral_here() noexcept;
void set_deferral_everywhere(int64_t least) noexcept;
int64_t deferral_everywhere() noexcept;

// While it exists, this thread's calls run at once: those of a kernel, which holds addresses of
// what they read and writes there.
class RunsAtOnce {
 public:
  RunsAtOnce() noexcept : is_on_(least_deferred() != kDeferNever) {
    if (!is_on_) [[likely]]
      return;
    former_ = deferral_here();
    set_deferral_here(kDeferNever);
  }
  ~RunsAtOnce() {
    if (is_on_) [[unlikely]]
      set_deferral_here(former_);
  }
  RunsAtOnce(const RunsAtOnce&) = delete;
  RunsAtOnce& operator=(const RunsAtOnce&) = delete;

 private:
  bool is_on_;
  std::optional<int64_t> former_;
};

// While it exists, this thread defers calls for results of so many elements, unless a mode says
// what it does, or all threads defer more.
class Defers {
 public:
  explicit Defers(int64_t least) noexcept
      : is_on_(least != kDeferNever && !deferral_here() && least < deferral_everywhere()) {
    if (is_on_) set_deferral_here(least);
  }
  ~Defers() {
    if (is_on_) set_deferral_here(std::nullopt);
  }
  Defers(const Defers&) = delete;
  Defers& operator=(const Defers&) = delete;

 private:
  bool is_on_;
};

// The object that takes deferred calls; set once.
void set_deferral(Deferral* deferral);
Deferral& deferral();

}  // namespace treadle
