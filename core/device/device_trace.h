// DeviceTrace: a backend's record of the work of its devices while a profiler runs.
//
//   DeviceTrace& trace = *require_backend(type).trace();
//   trace.start();
//   ...
//   for (const DeviceEvent& e : trace.stop()) ...
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace treadle {

struct DeviceEvent {
  enum class Kind : uint8_t { Kernel = 0, Copy = 1, Fill = 2 };
  std::string name;
  Kind kind = Kind::Kernel;
  int device = 0;
  uint64_t stream = 0;   // a number that tells streams apart
  int64_t begin_ns = 0;  // of the profiler's clock (core/dispatch/profiler.h), like the others
  int64_t end_ns = 0;
  // The time at which it was queued, and the system's id of the thread; 0 if unknown.
  int64_t queued_ns = 0;
  uint64_t thread = 0;
  uint64_t call = 0;  // work that one call queued has one number
  int64_t bytes = 0;  // of a copy and a fill
};

// All functions throw Error.
class DeviceTrace {
 public:
  virtual ~DeviceTrace() = default;
  // Starts recording, for all threads. RuntimeError, with the reason, if it cannot.
  virtual void start() = 0;
  // Waits for the devices and ends the recording. It returns all events, in the order of their
  // start.
  virtual std::vector<DeviceEvent> stop() = 0;
};

}  // namespace treadle
