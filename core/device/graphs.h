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
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace treadle {

// Calls that no capture can hold, such as waiting for the device, end it with an error: those of
// any thread, those of the one that captures, or none but those on the stream.
enum class CaptureErrors : uint8_t { Global, ThreadLocal, Relaxed };

// All functions throw Error.
class Graphs {
 public:
  virtual ~Graphs() = default;
  // Captures what is queued in the stream from here on. `pool`: a private pool that is to serve
  // this graph, too, as graphs that are never in use together share memory; 0: a new one. Returns
  // the pool. RuntimeError for the default stream, and for one that is captured already.
  virtual uint64_t begin(int index, uint64_t stream, uint64_t pool, CaptureErrors errors) = 0;
  // Ends the capture, whether it went well or not: RuntimeError where it did not.
  virtual void* end(int index, uint64_t stream) = 0;
  // Queues what was captured. Random numbers go on from where their generators are now.
  virtual void replay(void* graph, uint64_t stream) = 0;
  virtual void destroy(void* graph) noexcept = 0;
  virtual int device_of(void* graph) = 0;
  // The stream with whose capture what is queued in the stream is captured: itself after begin(),
  // another where it has waited for what is queued there since; nothing where it is not captured.
  virtual std::optional<uint64_t> captured_with(int index, uint64_t stream) = 0;
  // Writes the graph to a file, in the language of Graphviz.
  virtual void write(void* graph, const std::string& path) = 0;
};

}  // namespace treadle
