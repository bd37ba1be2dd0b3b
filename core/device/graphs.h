// Graphs: a backend's interface for work that is captured once and then queued as a whole.
//
//   Graphs& graphs = *require_backend(type).graphs();
//   graphs.begin(index, stream, 0, CaptureErrors::Global);
//   ...                                    // what is queued in the stream is kept, and not done
//   void* graph = graphs.end(index, stream);
//   graphs.replay(graph, stream);          // does it, again and again
//
// Memory that is requested during a capture comes from a private pool
// (core/memory/caching_allocator.h). It stays there as long as the graph exists, because replays
// read and write the same addresses as the capture. The same holds for streams that join the
// capture by waiting for one of its events.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace treadle {

// A call that no capture can hold, such as waiting for the device, ends the capture with an error.
// The mode selects the calls: those of any thread, those of the capturing thread, or only those on
// the stream.
enum class CaptureErrors : uint8_t { Global, ThreadLocal, Relaxed };

// All functions throw Error.
class Graphs {
 public:
  virtual ~Graphs() = default;
  // Captures the work that is queued in the stream from here on. `pool` is a private pool that also
  // serves this graph, so that graphs that are never in use together share memory; 0: a new pool.
  // Returns the pool. RuntimeError for the default stream, and for one that is already captured.
  virtual uint64_t begin(int index, uint64_t stream, uint64_t pool, CaptureErrors errors) = 0;
  // Ends the capture, whether it succeeded or not. RuntimeError if it failed.
  virtual void* end(int index, uint64_t stream) = 0;
  // Queues the captured work. Random numbers continue from the present positions of their
  // generators.
  virtual void replay(void* graph, uint64_t stream) = 0;
  virtual void destroy(void* graph) noexcept = 0;
  virtual int device_of(void* graph) = 0;
  // The stream whose capture includes the work queued in this stream: itself after begin(); another
  // one if this stream has waited for work queued there since; nothing if it is not captured.
  virtual std::optional<uint64_t> captured_with(int index, uint64_t stream) = 0;
  // Writes the graph to a file, in the language of Graphviz.
  virtual void write(void* graph, const std::string& path) = 0;
};

}  // namespace treadle
