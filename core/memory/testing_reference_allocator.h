// ReferenceAllocator: the rules of the caching allocator (core/memory/caching_allocator.h) in their
// simplest form, as a reference for tests. Segments are lists of blocks that are searched from end
// to end. Statistics are recounted from the blocks of a segment before and after each step.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/memory/memory_statistics.h"
#include "core/memory/testing_device.h"

namespace treadle {

class ReferenceAllocator {
 public:
  struct Block {
    uintptr_t address;
    size_t size, requested = 0;
    BlockState state = BlockState::Inactive;
    std::map<uint64_t, int64_t> waits{};  // stream -> pieces of work that it must have done
  };
  struct Segment {
    size_t size;
    uint64_t stream;
    bool large;
    std::vector<Block> blocks;
  };

  ReferenceAllocator(const SimulatedDevice& device) : device_(device) {}

  // The expected address; none: memory has run out. Call it before the real one.
  std::optional<uintptr_t> allocate(size_t nbytes, uint64_t stream) {
    for (auto& [number, waiting] : waiting_) pass(number, device_.done(number));
    const size_t size = (nbytes + 511) / 512 * 512;
    const bool large = size > kMiB;
    Place place = best(size, stream, large);
    if (!place.segment) {
      const size_t wanted = !large             ? 2 * kMiB
                            : size < 10 * kMiB ? 20 * kMiB
                                               : (size + 2 * kMiB - 1) / (2 * kMiB) * 2 * kMiB;
      if (!fits(wanted)) {
        ++statistics.num_alloc_retries, ++statistics.num_sync_all_streams;
        for (auto& [number, waiting] : waiting_) pass(number, INT64_MAX);
        place = best(size, stream, large);
        if (!place.segment) release_free();
        if (!place.segment && !fits(wanted)) {
          ++statistics.num_ooms;
          return std::nullopt;
        }
      }
      if (!place.segment) place = add_segment(wanted, stream, large);
    }
    Segment& segment = *place.segment;
    change(segment, [&] {
      std::vector<Block>& blocks = segment.blocks;
      const size_t rest = blocks[place.block].size - size;
      if (large ? rest > kMiB : rest >= 512) {
        blocks[place.block].size = size;
        blocks.insert(blocks.begin() + static_cast<ptrdiff_t>(place.block) + 1,
                      Block{blocks[place.block].address + size, rest});
      }
      blocks[place.block].state = BlockState::Allocated;
      blocks[place.block].requested = nbytes;
    });
    return segment.blocks[place.block].address;
  }

  void record_stream(uintptr_t address, uint64_t stream) {
    const Place place = at(address);
    if (place.segment->stream != stream) place.segment->blocks[place.block].waits[stream] = 0;
  }

  void deallocate(uintptr_t address) {
    const Place place = at(address);
    Block& block = place.segment->blocks[place.block];
    if (block.waits.empty()) return set_free(place);
    change(*place.segment, [&] { block.state = BlockState::Pending; });
    for (auto& [stream, mark] : block.waits) {
      mark = device_.queued(stream);
      waiting_[stream].push_back({mark, address});
    }
  }

  void empty_cache() {
    for (auto& [number, waiting] : waiting_) pass(number, device_.done(number));
    release_free();
  }

  size_t limit = SIZE_MAX;
  MemoryStatistics statistics;
  std::map<uintptr_t, Segment> segments;

 private:
  static constexpr size_t kMiB = size_t{1} << 20;
  struct Place {
    Segment* segment = nullptr;
    size_t block = 0;
  };

  Place at(uintptr_t address) {
    Segment& segment = std::prev(segments.upper_bound(address))->second;
    for (size_t i = 0;; ++i)
      if (segment.blocks.at(i).address == address) return {&segment, i};
  }

  Place best(size_t size, uint64_t stream, bool large) {
    Place best;
    size_t best_size = SIZE_MAX;
    for (auto& [address, segment] : segments) {
      if (segment.stream != stream || segment.large != large) continue;
      for (size_t i = 0; i < segment.blocks.size(); ++i) {
        const Block& b = segment.blocks[i];
        if (b.state != BlockState::Inactive || b.size < size || b.size >= best_size) continue;
        best = {&segment, i};
        best_size = b.size;
      }
    }
    return best;
  }

  bool fits(size_t size) const {
    const size_t wanted = static_cast<size_t>(statistics.reserved_bytes.all.current) + size;
    return wanted <= device_.capacity && wanted <= limit;
  }

  Place add_segment(size_t size, uint64_t stream, bool large) {
    const uintptr_t address = device_.next_address();
    Segment& segment = segments[address] = {0, stream, large, {}};
    change(segment, [&] {
      segment.size = size;
      segment.blocks = {Block{address, size}};
    });
    ++statistics.num_device_alloc;
    return {&segment, 0};
  }

  void release_free() {
    for (auto it = segments.begin(); it != segments.end();) {
      Segment& segment = it->second;
      const bool is_free =
          segment.blocks.size() == 1 && segment.blocks[0].state == BlockState::Inactive;
      if (is_free) {
        change(segment, [&] { segment.size = 0; });
        ++statistics.num_device_free;
      }
      it = is_free ? segments.erase(it) : std::next(it);
    }
  }

  // Work that the stream has done is no longer waited for.
  void pass(uint64_t stream, int64_t done) {
    auto& waiting = waiting_[stream];
    for (; !waiting.empty() && waiting.front().first <= done; waiting.pop_front()) {
      const Place place = at(waiting.front().second);
      Block& block = place.segment->blocks[place.block];
      block.waits.erase(stream);
      if (block.waits.empty()) set_free(place);
    }
  }

  void set_free(Place place) {
    change(*place.segment, [&] {
      std::vector<Block>& blocks = place.segment->blocks;
      blocks[place.block].state = BlockState::Inactive;
      blocks[place.block].requested = 0;
      for (size_t i = 1; i < blocks.size();) {
        const bool both =
            blocks[i - 1].state == BlockState::Inactive && blocks[i].state == BlockState::Inactive;
        if (both) {
          blocks[i - 1].size += blocks[i].size;
          blocks.erase(blocks.begin() + static_cast<ptrdiff_t>(i));
        } else {
          ++i;
        }
      }
    });
  }

  // The quantities of one segment, in the order of kPooledStatistics.
  static std::vector<int64_t> count(const Segment& segment) {
    std::vector<int64_t> n(std::size(kPooledStatistics), 0);
    if (segment.size == 0) return n;
    n[2] = 1;
    n[3] = static_cast<int64_t>(segment.size);
    for (const Block& b : segment.blocks) {
      const auto size = static_cast<int64_t>(b.size);
      if (b.state == BlockState::Allocated) ++n[0], n[1] += size;
      if (b.state != BlockState::Inactive) ++n[4], n[5] += size;
      if (b.state == BlockState::Inactive && segment.blocks.size() > 1) ++n[6], n[7] += size;
      n[8] += static_cast<int64_t>(b.requested);
    }
    return n;
  }

  template <class Step>
  void change(Segment& segment, Step step) {
    const std::vector<int64_t> before = count(segment);
    step();
    const std::vector<int64_t> after = count(segment);
    for (size_t i = 0; i < before.size(); ++i) {
      PooledStatistic& pooled = statistics.*kPooledStatistics[i].second;
      const int64_t by = after[i] - before[i];
      for (Statistic* s : {&pooled.all, segment.large ? &pooled.large_pool : &pooled.small_pool}) {
        s->current += by;
        s->peak = std::max(s->peak, s->current);
        s->allocated += std::max<int64_t>(by, 0);
        s->freed += std::max<int64_t>(-by, 0);
      }
    }
  }

  const SimulatedDevice& device_;
  std::map<uint64_t, std::deque<std::pair<int64_t, uintptr_t>>> waiting_;  // mark, block
};

}  // namespace treadle
