// Captures streams, and queues the captured graphs.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/graphs.h"

#include <algorithm>
#include <memory>

#include "aten/backend/cuda/backend.h"
#include "aten/backend/cuda/device_guard.h"
#include "core/base/error.h"
#include "core/memory/caching_allocator.h"

namespace treadle::cuda {
namespace {

CachingAllocator& memory_on(int device) {
  return memory_of({DeviceType::CUDA, static_cast<int8_t>(device)});
}

cudaStreamCaptureMode mode_of(CaptureErrors errors) {
  switch (errors) {
    case CaptureErrors::ThreadLocal:
      return cudaStreamCaptureModeThreadLocal;
    case CaptureErrors::Relaxed:
      return cudaStreamCaptureModeRelaxed;
    default:
      return cudaStreamCaptureModeGlobal;
  }
}

// The number of the capture that a stream takes part in, if any.
std::optional<unsigned long long> capture_in(uint64_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long number = 0;
  succeed(calls().stream_get_capture_info(handle_of(stream), &status, &number, nullptr, nullptr,
                                          nullptr, nullptr),
          "asking for a stream's capture");
  if (status != cudaStreamCaptureStatusActive) return std::nullopt;
  return number;
}

}  // namespace

uint64_t CudaGraphs::begin(int index, uint64_t stream, uint64_t pool, CaptureErrors errors) {
  check<ErrorKind::Runtime>(
      stream != 0, OpName("cuda"),
      "expected a stream other than the default one, which cannot be captured, "
      "got the default stream of cuda:",
      index);
  const uint64_t used = memory_on(index).begin_pool(stream, pool);
  auto graph = std::make_unique<Graph>(Graph{index, stream, used});
  try {
    const DeviceGuard guard(index);
    succeed(calls().stream_begin_capture(handle_of(stream), mode_of(errors)), "capturing a stream");
  } catch (...) {
    memory_on(index).end_pool(stream);
    memory_on(index).release_pool(used);
    throw;
  }
  const std::lock_guard lock(mutex_);
  captures_[{index, stream}] = graph.release();
  ++capture_count_;
  return used;
}

void* CudaGraphs::end(int index, uint64_t stream) {
  Graph* graph;
  {
    const std::lock_guard lock(mutex_);
    const auto it = captures_.find({index, stream});
    check<ErrorKind::Runtime>(it != captures_.end(), OpName("cuda"),
                              "expected a stream of cuda:", index,
                              " that is captured, got one that is not");
    graph = it->second;
    captures_.erase(it);
    --capture_count_;
  }
  try {
    const DeviceGuard guard(index);
    const cudaError_t code = calls().stream_end_capture(handle_of(stream), &graph->graph);
    memory_on(index).end_pool(stream);
    succeed(code, "ending a capture");
    succeed(calls().graph_instantiate(&graph->executable, graph->graph, 0), "making a graph");
  } catch (...) {
    destroy(graph);
    throw;
  }
  return graph;
}

void CudaGraphs::replay(void* graph, uint64_t stream) {
  Graph& g = graph_at(graph);
  const DeviceGuard guard(g.device);
  for (const RandomUse& use : g.random) {
    // Through pinned memory, which is reused once the copy is done. So there is no wait.
    auto* const here = static_cast<GeneratorImpl::Position*>(pinned_.allocate(sizeof *use.base));
    *here = use.generator->reserve(use.blocks);
    const cudaError_t code = calls().memcpy_async(use.base, here, sizeof *use.base,
                                                  cudaMemcpyHostToDevice, handle_of(stream));
    pinned_.note_use(here, g.device, handle_of(stream));
    pinned_.deallocate(here);
    succeed(code, "replaying a graph");
  }
  succeed(calls().graph_launch(g.executable, handle_of(stream)), "replaying a graph");
}

void CudaGraphs::destroy(void* graph) noexcept {
  Graph& g = graph_at(graph);
  try {
    const DeviceGuard guard(g.device);
    if (g.executable) calls().graph_exec_destroy(g.executable);
    if (g.graph) calls().graph_destroy(g.graph);
    for (const RandomUse& use : g.random) memory_on(g.device).deallocate(use.base);
    memory_on(g.device).release_pool(g.pool);
  } catch (const std::exception&) {
    // The device is lost, and its memory with it.
  }
  delete &g;
}

int CudaGraphs::device_of(void* graph) { return graph_at(graph).device; }

CudaGraphs::Graph* CudaGraphs::capture_of(int index, uint64_t stream) {
  // The default stream cannot be captured, and a query of it would end a capture.
  if (stream == 0 || capture_count_.load(std::memory_order_relaxed) == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto it = captures_.find({index, stream});
  if (it != captures_.end()) return it->second;
  const std::optional<unsigned long long> capture = capture_in(stream);
  if (!capture) return nullptr;
  // Streams of other devices may take part, too: the pool and the numbers there are not the
  // graph's.
  for (const auto& [begun, graph] : captures_)
    if (begun.first == index && capture_in(begun.second) == capture) return graph;
  return nullptr;
}

std::optional<uint64_t> CudaGraphs::captured_with(int index, uint64_t stream) {
  const Graph* const graph = capture_of(index, stream);
  return graph ? std::optional(graph->stream) : std::nullopt;
}

void CudaGraphs::write(void* graph, const std::string& path) {
  succeed(calls().graph_debug_dot_print(graph_at(graph).graph, path.c_str(),
                                        cudaGraphDebugDotFlagsVerbose),
          "writing a graph");
}

RandomStart CudaGraphs::reserve(int device, const Generator& generator, uint64_t blocks) {
  Graph* const graph =
      capture_of(device, current_stream({DeviceType::CUDA, static_cast<int8_t>(device)}));
  if (!graph) return {generator->reserve(blocks)};
  const std::lock_guard lock(random_mutex_);
  std::vector<RandomUse>& random = graph->random;
  auto use = std::find_if(random.begin(), random.end(),
                          [&](const RandomUse& u) { return u.generator.get() == generator.get(); });
  if (use == random.end()) {
    // From the graph's own pool, so that its address stays.
    void* const base = memory_on(device).allocate(sizeof(GeneratorImpl::Position), graph->stream);
    use = random.insert(use, {generator, static_cast<GeneratorImpl::Position*>(base), 0});
  }
  const RandomStart start{{0, use->blocks}, use->base};
  use->blocks += blocks;
  return start;
}

RandomStart reserve_random(int device, const Generator& generator, uint64_t blocks) {
  auto* const backend = static_cast<CudaBackend*>(backend_of(DeviceType::CUDA));
  return backend ? backend->graphs()->reserve(device, generator, blocks)
                 : RandomStart{generator->reserve(blocks)};
}

}  // namespace treadle::cuda
