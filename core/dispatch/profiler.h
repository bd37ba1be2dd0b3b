// Profiler: records which operators ran on which thread, when, on which inputs, and how much memory
// they took.
//
//   profiler::start({.shapes = true});      // this thread's calls are recorded from here
//   ...
//   for (const profiler::Event& e : profiler::stop()) ...
//
// It is a layer outside all others. A thread includes it while the thread is recorded. For any
// other thread it costs nothing, because a call tests its layers anyway.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/layers.h"

namespace treadle::profiler {

enum class EventKind : uint8_t { Operator = 0, Backward = 1, Range = 2 };

struct Event {
  std::string name;  // "aten::add"
  EventKind kind = EventKind::Operator;
  uint64_t thread = 0;   // the system's number of the thread
  int32_t parent = -1;   // the event around it, by its place in what stop() returns
  int64_t begin_ns = 0;  // of a clock that only goes forward
  int64_t end_ns = 0;
  int64_t bytes = 0;        // allocated less freed on this thread, with what it called
  int64_t allocations = 0;  // on this thread, with what it called
  // Bytes of the tensors that it read and of those that it wrote, each element once; 0 for a view,
  // for an operator made of others, and if shapes were not asked for. Indices may leave out a part
  // of what they select from, so that less is read.
  int64_t traffic = 0;
  std::string shapes;  // of its arguments, as JSON: [[2, 3], [], [[1], [2]]]; "" if not asked for
  std::string types;   // their element types: ["float32", "", ["int64", "int64"]]
  std::string values;  // the numbers among them: ["", "1", ""]
  uint32_t stack = 0;  // what the stack source said
};

struct Options {
  bool shapes = false;  // record shapes, element types and numbers
  bool stacks = false;  // ask the stack source at every event that no operator is around
};

// Begins to record, this thread first. RuntimeError when a recording runs.
void start(Options options);
// Ends the recording: all events, each after the one around it. RuntimeError when none runs.
std::vector<Event> stop();
bool running();
// Records this thread too, in the recording that runs; does nothing if none does.
void join();

// Whether this thread's calls are recorded.
inline bool recording() { return layer_state().included & layer_bit(Layer::Profiler); }

// Says where the program is, as a number that means something to it.
using StackSource = uint32_t (*)();
void set_stack_source(StackSource source);

// An event of the program's own. The result of begin() belongs to this thread; end() ignores that
// of a recording that is over.
uint64_t begin(std::string name, EventKind kind);
void end(uint64_t event);

// An event for the life of the object, if this thread is recorded; only then the name is asked for.
class Scope {
 public:
  template <class Name>
  Scope(EventKind kind, Name&& name) {
    if (recording()) [[unlikely]]
      event_ = begin(name(), kind);
  }
  ~Scope() {
    if (event_) [[unlikely]]
      end(event_);
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  uint64_t event_ = 0;
};

// In an operator made of others: their calls are recorded too, under it.
class NestedCalls {
 public:
  NestedCalls() : saved_(layer_state().excluded) {
    layer_state().excluded &= static_cast<LayerMask>(~layer_bit(Layer::Profiler));
  }
  ~NestedCalls() { layer_state().excluded = saved_; }
  NestedCalls(const NestedCalls&) = delete;
  NestedCalls& operator=(const NestedCalls&) = delete;

 private:
  LayerMask saved_;
};

}  // namespace treadle::profiler
