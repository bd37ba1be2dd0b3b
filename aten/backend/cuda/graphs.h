// CudaGraphs: capture and replay of the work that is queued in a stream, including its random
// numbers.
//
// A kernel that draws random numbers receives their starting position when it is queued. In a graph
// it is queued once and runs many times. So it receives an address instead, where each replay first
// writes the generator's position, and the offset of its own numbers from that position. So a
// replay draws the same numbers as the same calls without a graph.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "aten/backend/cuda/calls.h"
#include "aten/backend/cuda/pinned_memory.h"
#include "core/device/generator.h"
#include "core/device/graphs.h"

namespace treadle::cuda {

// The start of a call's random numbers: `at`, or with `base`, the position there plus `at`.
struct RandomStart {
  GeneratorImpl::Position at;
  const GeneratorImpl::Position* base = nullptr;  // on the device
};

class CudaGraphs final : public Graphs {
 public:
  explicit CudaGraphs(PinnedMemory& pinned) : pinned_(pinned) {}

  uint64_t begin(int index, uint64_t stream, uint64_t pool, CaptureErrors errors) override;
  void* end(int index, uint64_t stream) override;
  void replay(void* graph, uint64_t stream) override;
  void destroy(void* graph) noexcept override;
  int device_of(void* graph) override;
  std::optional<uint64_t> captured_with(int index, uint64_t stream) override;
  void write(void* graph, const std::string& path) override;

  // Reserves counters of the generator for a call in this thread's stream on the device.
  RandomStart reserve(int device, const Generator& generator, uint64_t blocks);

 private:
  struct RandomUse {
    Generator generator;
    GeneratorImpl::Position* base;
    uint64_t blocks;  // that a replay needs
  };
  struct Graph {
    int device;
    uint64_t stream;  // of the capture
    uint64_t pool;
    std::vector<RandomUse> random{};
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
  };
  static Graph& graph_at(void* graph) { return *static_cast<Graph*>(graph); }

  // Null if the stream is not captured.
  Graph* capture_of(int index, uint64_t stream);

  PinnedMemory& pinned_;
  // The mutex of the captures. The allocator reads them, so it is not called with this lock held.
  std::mutex mutex_;
  std::map<std::pair<int, uint64_t>, Graph*> captures_;  // by device and the stream that began
  std::mutex random_mutex_;                              // of their uses of random numbers
  std::atomic<int> capture_count_{0};
};

// The start from the backend's graphs, or without a backend, from the generator's counters.
RandomStart reserve_random(int device, const Generator& generator, uint64_t blocks);

}  // namespace treadle::cuda
