// A place is walked where its tensors lie, or through copies; long lists are shared out among
// threads.
#include "aten/ops/optimizers/cpu/multi_tensor.h"

#include <algorithm>
#include <array>

#include "aten/engine/copy.h"
#include "aten/engine/overlap.h"
#include "aten/engine/view_shapes.h"
#include "core/base/parallel.h"

namespace treadle::cpu {
namespace {

constexpr int64_t kGrain = 32768;

using Memory = std::array<char*, kMostSides>;

class Walk {
 public:
  Walk(ArrayRef<ListSide> sides, const ListStep& step)
      : sides_(sides), step_(step), item_(sides[0].list[0].element_size()) {
    const size_t places = sides[0].list.size();
    starts_.reserve(places + 1);
    direct_.reserve(places);
    int64_t largest_copied = 0;
    starts_.push_back(0);
    for (size_t i = 0; i < places; ++i) {
      const int64_t n = numel(i);
      direct_.push_back(n == 0 || is_direct(i));
      if (!direct_[i]) largest_copied = std::max(largest_copied, n);
      starts_.push_back(starts_[i] + n);
    }
    if (largest_copied == 0) return;
    for (const ListSide& side : sides_) {
      copies_.push_back(side.list.empty() ? Tensor()
                                          : empty_cpu({largest_copied}, side.list[0].dtype()));
    }
  }

  void run() const {
    const size_t places = direct_.size();
    if (starts_.back() <= kGrain || places_share_memory()) {
      for (size_t i = 0; i < places; ++i) direct_[i] ? walk(i, 0, numel(i)) : walk_copies(i);
      return;
    }
    parallel_for(starts_.back(), kGrain, [&](int64_t begin, int64_t end) {
      size_t i = static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), begin) -
                                     starts_.begin() - 1);
      for (; i < places && starts_[i] < end; ++i) {
        if (direct_[i])
          walk(i, std::max(begin, starts_[i]) - starts_[i],
               std::min(end, starts_[i + 1]) - starts_[i]);
      }
    });
    for (size_t i = 0; i < places; ++i)
      if (!direct_[i]) walk_copies(i);
  }

 private:
  int64_t numel(size_t place) const { return sides_[0].list[place].numel(); }

  // Whether the tensors of a place have their elements in one order, without gaps, and each in
  // memory of its own, so that a pointer goes along all of them.
  bool is_direct(size_t place) const {
    const Tensor& first = sides_[0].list[place];
    const IntList strides = first.strides();
    const bool plain = first.is_contiguous();
    if (!plain && !shape::is_dense(first)) return false;
    const size_t bytes = static_cast<size_t>(first.nbytes());
    std::array<uintptr_t, kMostSides> memory{};
    for (size_t s = 0; s < sides_.size(); ++s) {
      if (sides_[s].list.empty()) continue;
      const Tensor& t = sides_[s].list[place];
      if (plain ? !t.is_contiguous() : t.strides() != strides) return false;
      memory[s] = reinterpret_cast<uintptr_t>(t.data());
      // A tensor without gaps lies from its first element on, as long as all others here.
      for (size_t k = 0; k < s; ++k) {
        if (sides_[k].list.empty() || !(sides_[s].written || sides_[k].written)) continue;
        if (memory[k] < memory[s] + bytes && memory[s] < memory[k] + bytes) return false;
      }
    }
    return true;
  }

  void walk(size_t place, int64_t begin, int64_t end) const {
    if (begin >= end) return;
    Memory memory{};
    for (size_t s = 0; s < sides_.size(); ++s) {
      if (!sides_[s].list.empty())
        memory[s] = static_cast<char*>(sides_[s].list[place].data()) + begin * item_;
    }
    step_(place, memory.data(), end - begin);
  }

  void walk_copies(size_t place) const {
    Memory memory{};
    std::array<Tensor, kMostSides> copies;
    for (size_t s = 0; s < sides_.size(); ++s) {
      if (sides_[s].list.empty()) continue;
      const Tensor& t = sides_[s].list[place];
      copies[s] = alias_with_geometry(copies_[s], t.sizes(), contiguous_strides(t.sizes()), 0);
      copy_strided(copies[s], t);
      memory[s] = static_cast<char*>(copies[s].data());
    }
    step_(place, memory.data(), numel(place));
    for (size_t s = 0; s < sides_.size(); ++s) {
      if (copies[s].defined() && sides_[s].written) copy_strided(sides_[s].list[place], copies[s]);
    }
  }

  // Whether something that is written may share memory with another tensor.
  bool places_share_memory() const {
    struct Range {
      const char *low, *high;
      bool written;
    };
    std::vector<Range> ranges;
    for (const ListSide& side : sides_) {
      for (const Tensor& t : side.list) {
        if (t.numel() == 0) continue;
        const char* memory = static_cast<const char*>(t.impl()->storage_data());
        const MemoryRange r = memory_range(t);
        ranges.push_back({memory + r.low, memory + r.high, side.written});
      }
    }
    std::sort(ranges.begin(), ranges.end(),
              [](const Range& a, const Range& b) { return a.low < b.low; });
    const char *end = nullptr, *written_end = nullptr;  // of what began before
    for (const Range& r : ranges) {
      if (r.low < (r.written ? end : written_end)) return true;
      end = std::max(end, r.high);
      if (r.written) written_end = std::max(written_end, r.high);
    }
    return false;
  }

  ArrayRef<ListSide> sides_;
  const ListStep& step_;
  int64_t item_;
  std::vector<int64_t> starts_;  // of each place among all elements, and the end of the last
  std::vector<bool> direct_;
  std::vector<Tensor> copies_;  // memory for the tensors of the largest place that is not direct
};

}  // namespace

void walk_lists(ArrayRef<ListSide> sides, const ListStep& step) { Walk(sides, step).run(); }

}  // namespace treadle::cpu
