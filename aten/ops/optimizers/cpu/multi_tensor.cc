// A step runs on the tensors' own memory or on copies. Long lists are split among threads.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/optimizers/cpu/multi_tensor.h"

#include <algorithm>
#include <array>

#include "aten/engine/copy.h"
#include "aten/engine/overlap.h"
#include "aten/engine/strides/view_shapes.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

constexpr int64_t kGrain = 32768;

using Memory = std::array<char*, kMaxTensorLists>;

class MultiTensorApply {
 public:
  MultiTensorApply(ArrayRef<MultiTensorList> lists, const MultiTensorStep& step)
      : lists_(lists), step_(step), item_(lists[0].list[0].element_size()) {
    const size_t count = lists[0].list.size();
    starts_.reserve(count + 1);
    direct_.reserve(count);
    int64_t largest_copied = 0;
    starts_.push_back(0);
    for (size_t i = 0; i < count; ++i) {
      const int64_t n = numel(i);
      direct_.push_back(n == 0 || is_direct(i));
      if (!direct_[i]) largest_copied = std::max(largest_copied, n);
      starts_.push_back(starts_[i] + n);
    }
    if (largest_copied == 0) return;
    for (const MultiTensorList& operand : lists_) {
      copies_.push_back(
          operand.list.empty() ? Tensor() : empty_cpu({largest_copied}, operand.list[0].dtype()));
    }
  }

  void run() const {
    const size_t count = direct_.size();
    if (starts_.back() <= kGrain || operands_share_memory()) {
      for (size_t i = 0; i < count; ++i) direct_[i] ? apply(i, 0, numel(i)) : apply_to_copies(i);
      return;
    }
    parallel_for(starts_.back(), kGrain, [&](int64_t begin, int64_t end) {
      size_t i = static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), begin) -
                                     starts_.begin() - 1);
      for (; i < count && starts_[i] < end; ++i) {
        if (direct_[i])
          apply(i, std::max(begin, starts_[i]) - starts_[i],
                std::min(end, starts_[i + 1]) - starts_[i]);
      }
    });
    for (size_t i = 0; i < count; ++i)
      if (!direct_[i]) apply_to_copies(i);
  }

 private:
  int64_t numel(size_t index) const { return lists_[0].list[index].numel(); }

  // Whether the tensors at an index have their elements in one order, without gaps, each in memory
  // of its own, so that a pointer can traverse all of them.
  bool is_direct(size_t index) const {
    const Tensor& first = lists_[0].list[index];
    const IntList strides = first.strides();
    const bool plain = first.is_contiguous();
    if (!plain && !shape::is_dense(first)) return false;
    const size_t bytes = static_cast<size_t>(first.nbytes());
    std::array<uintptr_t, kMaxTensorLists> memory{};
    for (size_t s = 0; s < lists_.size(); ++s) {
      if (lists_[s].list.empty()) continue;
      const Tensor& t = lists_[s].list[index];
      if (plain ? !t.is_contiguous() : t.strides() != strides) return false;
      memory[s] = reinterpret_cast<uintptr_t>(t.data());
      // A tensor without gaps lies from its first element on, as long as all others here.
      for (size_t k = 0; k < s; ++k) {
        if (lists_[k].list.empty() || !(lists_[s].written || lists_[k].written)) continue;
        if (memory[k] < memory[s] + bytes && memory[s] < memory[k] + bytes) return false;
      }
    }
    return true;
  }

  void apply(size_t index, int64_t begin, int64_t end) const {
    if (begin >= end) return;
    Memory memory{};
    for (size_t s = 0; s < lists_.size(); ++s) {
      if (!lists_[s].list.empty())
        memory[s] = static_cast<char*>(lists_[s].list[index].data()) + begin * item_;
    }
    step_(index, memory.data(), end - begin);
  }

  void apply_to_copies(size_t index) const {
    Memory memory{};
    std::array<Tensor, kMaxTensorLists> copies;
    for (size_t s = 0; s < lists_.size(); ++s) {
      if (lists_[s].list.empty()) continue;
      const Tensor& t = lists_[s].list[index];
      copies[s] = alias_with_geometry(copies_[s], t.sizes(), contiguous_strides(t.sizes()), 0);
      copy_strided(copies[s], t);
      memory[s] = static_cast<char*>(copies[s].data());
    }
    step_(index, memory.data(), numel(index));
    for (size_t s = 0; s < lists_.size(); ++s) {
      if (copies[s].defined() && lists_[s].written) copy_strided(lists_[s].list[index], copies[s]);
    }
  }

  // Whether a written tensor may share memory with another tensor.
  bool operands_share_memory() const {
    struct Range {
      const char *low, *high;
      bool written;
    };
    std::vector<Range> ranges;
    for (const MultiTensorList& operand : lists_) {
      for (const Tensor& t : operand.list) {
        if (t.numel() == 0) continue;
        const char* memory = static_cast<const char*>(t.impl()->storage_data());
        const MemoryRange r = memory_range(t);
        ranges.push_back({memory + r.low, memory + r.high, operand.written});
      }
    }
    std::sort(ranges.begin(), ranges.end(),
              [](const Range& a, const Range& b) { return a.low < b.low; });
    const char *end = nullptr, *written_end = nullptr;  // of the earlier ranges
    for (const Range& r : ranges) {
      if (r.low < (r.written ? end : written_end)) return true;
      end = std::max(end, r.high);
      if (r.written) written_end = std::max(written_end, r.high);
    }
    return false;
  }

  ArrayRef<MultiTensorList> lists_;
  const MultiTensorStep& step_;
  int64_t item_;
  std::vector<int64_t> starts_;  // of each index among all elements, and the end of the last
  std::vector<bool> direct_;
  std::vector<Tensor> copies_;  // memory for the tensors of the largest index that is not direct
};

}  // namespace

void multi_tensor_apply(ArrayRef<MultiTensorList> lists, const MultiTensorStep& step) {
  MultiTensorApply(lists, step).run();
}

}  // namespace treadle::cpu
