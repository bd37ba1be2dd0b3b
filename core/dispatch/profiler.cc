// The recording: a list of events for each thread. Only stop() ever competes for its lock.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/dispatch/profiler.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>

#include "core/base/fork_safe_mutex.h"
#include "core/dispatch/dispatcher.h"
#include "core/memory/allocator.h"
#include "core/schema/function_schema.h"

namespace treadle::profiler {
namespace {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::atomic<StackSource> g_stack_source{nullptr};

void take_memory(Event& event, int sign) {
  const ThreadMemory memory = thread_memory();
  event.bytes += sign * memory.net_bytes;
  event.allocations += sign * memory.allocations;
}

// The events of one thread.
struct ThreadRecord {
  ThreadRecord(Options o, uint32_t number)
      : options(o), recording(number), thread(static_cast<uint64_t>(syscall(SYS_gettid))) {}

  const Options options;
  const uint32_t recording;
  const uint64_t thread;
  std::mutex mutex;  // a child of a fork leaves it alone
  bool over = false;
  std::vector<Event> events;
  std::vector<int32_t> open;  // the events that have not ended, outermost first

  // The place of the new event; -1 when the recording is over.
  int32_t begin(Event event) {
    const std::lock_guard lock(mutex);
    if (over) return -1;
    event.thread = thread;
    event.parent = open.empty() ? -1 : open.back();
    take_memory(event, -1);
    event.begin_ns = now();
    open.push_back(static_cast<int32_t>(events.size()));
    events.push_back(std::move(event));
    return open.back();
  }
  // Whether no operator is around what comes next.
  bool at_top() {
    const std::lock_guard lock(mutex);
    return !over &&
           (open.empty() || events[static_cast<size_t>(open.back())].kind == EventKind::Range);
  }
  // Where the operator called others, their traffic is its own.
  void add_traffic(int32_t place, int64_t bytes) {
    const std::lock_guard lock(mutex);
    if (over) return;
    Event& event = events[static_cast<size_t>(place)];
    const bool alone = static_cast<size_t>(place) + 1 == events.size();
    event.traffic = alone ? event.traffic + bytes : 0;
  }
  // Ends an event, and those in it that were forgotten.
  void end(int32_t place) {
    const std::lock_guard lock(mutex);
    if (over) return;
    while (!open.empty() && open.back() >= place) close_last();
  }
  std::vector<Event> finish(bool own_thread) {
    const std::lock_guard lock(mutex);
    over = true;
    while (!open.empty()) {
      Event& last = events[static_cast<size_t>(open.back())];
      if (!own_thread) {  // another thread's memory is not known
        last.bytes = last.allocations = 0;
        take_memory(last, -1);
      }
      close_last();
    }
    return std::move(events);
  }

 private:
  void close_last() {
    Event& event = events[static_cast<size_t>(open.back())];
    event.end_ns = now();
    take_memory(event, 1);
    open.pop_back();
  }
};

struct Recording {
  Options options;
  uint32_t number;
  std::vector<std::shared_ptr<ThreadRecord>> threads;
};

ForkSafeMutex& g_mutex = *new ForkSafeMutex;  // never destroyed
std::unique_ptr<Recording> g_recording;
uint32_t g_number = 0;
thread_local std::shared_ptr<ThreadRecord> t_record;

ThreadRecord* this_thread() {
  ThreadRecord* record = t_record.get();
  return record && recording() ? record : nullptr;
}

void leave() {
  layer_state().included &= static_cast<LayerMask>(~layer_bit(Layer::Profiler));
  t_record.reset();
}

// ---- arguments as text
// ------------------------------------------------------------------------------------------------

void add_number(std::string& out, int64_t v) { out += std::to_string(v); }
void add_number(std::string& out, double v) { out += str(v); }
void add_number(std::string& out, bool v) { out += v ? "True" : "False"; }

template <class List, class Add>
void add_list(std::string& out, const List& list, Add&& add) {
  out += '[';
  bool first = true;
  for (const auto& item : list) {
    if (!first) out += ", ";
    first = false;
    add(item);
  }
  out += ']';
}

void add_shape(std::string& out, const Tensor& t) {
  if (!t.defined()) {
    out += "[]";
    return;
  }
  add_list(out, t.sizes(), [&](int64_t n) { add_number(out, n); });
}
void add_type(std::string& out, const Tensor& t) {
  out += '"';
  if (t.defined()) out += name_of(t.dtype());
  out += '"';
}

struct ArgumentText {
  Event& event;

  void operator()(const Tensor& t) {
    add_shape(event.shapes, t);
    add_type(event.types, t);
    event.values += "\"\"";
  }
  void operator()(const Value::Tensors& list) {
    add_list(event.shapes, list, [&](const Tensor& t) { add_shape(event.shapes, t); });
    add_list(event.types, list, [&](const Tensor& t) { add_type(event.types, t); });
    event.values += "\"\"";
  }
  template <class T>
  void operator()(const T& v) {
    event.shapes += "[]";
    event.types += std::is_same_v<T, Scalar> ? "\"Scalar\"" : "\"\"";
    event.values += '"';
    if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double> ||
                  std::is_same_v<T, bool>)
      add_number(event.values, v);
    else if constexpr (std::is_same_v<T, Scalar>)
      event.values += to_string(v);
    else if constexpr (std::is_same_v<T, Value::Ints>)
      add_list(event.values, v, [&](int64_t n) { add_number(event.values, n); });
    event.values += '"';
  }
};

void describe(Event& event, const Stack& stack) {
  for (std::string* text : {&event.shapes, &event.types, &event.values}) text->assign(1, '[');
  for (size_t i = 0; i < stack.size(); ++i) {
    if (i > 0) {
      for (std::string* text : {&event.shapes, &event.types, &event.values}) *text += ", ";
    }
    std::visit(ArgumentText{event}, stack[i].variant());
  }
  for (std::string* text : {&event.shapes, &event.types, &event.values}) *text += "]";
}

// ---- bytes read and written ---------------------------------------------------------------------

// The bytes of the elements that a tensor refers to, each counted once.
int64_t distinct_bytes(const Tensor& t) {
  if (!t.defined() || t.numel() == 0) return 0;
  int64_t count = 1;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t.stride(d) != 0) count *= t.size(d);
  return count * t.element_size();
}

int64_t distinct_bytes(const Value& value) {
  if (const auto* t = std::get_if<Tensor>(&value.variant())) return distinct_bytes(*t);
  int64_t sum = 0;
  if (const auto* list = std::get_if<Value::Tensors>(&value.variant()))
    for (const Tensor& t : *list) sum += distinct_bytes(t);
  return sum;
}

// The bytes that the operator reads of its arguments and writes into them.
int64_t traffic_of_arguments(const Operator& op, const Stack& stack) {
  const auto& parameters = op.schema().arguments;
  const size_t count = std::min(stack.size(), parameters.size());
  const bool kernel = !op.entry().data_free;
  int64_t read = 0, changed = 0;
  int arguments_changed = 0;
  for (size_t i = 0; i < count; ++i) {
    const bool changes = parameters[i].type.writes();
    (changes ? changed : read) += distinct_bytes(stack[i]);
    arguments_changed += changes;
  }
  // The in-place form of an operator that has a result reads what it changes, and so does a kernel
  // with other inputs. Filling a tensor and copying into one do not, nor does writing to `out=`.
  const bool in_place_form = op.entry().op != &op;
  const bool reads_changed =
      kernel && op.info().form != Form::Out && (in_place_form || read > 0 || arguments_changed > 1);
  if (!kernel && changed == 0) return 0;  // a view, or made of others
  return read + (reads_changed ? 2 : 1) * changed;
}

// The bytes that it writes into new memory.
int64_t traffic_of_results(const Operator& op, const Stack& stack) {
  if (op.entry().data_free) return 0;
  const auto& results = op.schema().returns;
  int64_t sum = 0;
  for (size_t i = 0; i < stack.size() && i < results.size(); ++i)
    if (!results[i].type.alias) sum += distinct_bytes(stack[i]);
  return sum;
}

// ---- the layer ----------------------------------------------------------------------------------

// "aten::add.Tensor" without the name of the overload.
std::string short_name(const Operator& op) {
  const std::string_view name = op.info().name;
  return std::string(name.substr(0, name.find('.')));
}

void add_stack(ThreadRecord& record, Event& event) {
  const StackSource source = g_stack_source.load(std::memory_order_acquire);
  if (record.options.stacks && source && record.at_top()) event.stack = source();
}

void record_call(const Operator& op, Stack& stack) {
  ThreadRecord* record = this_thread();
  int32_t place = -1;
  if (record) {
    Event event;
    event.name = short_name(op);
    if (record->options.shapes) {
      describe(event, stack);
      event.traffic = traffic_of_arguments(op, stack);
    }
    add_stack(*record, event);
    place = record->begin(std::move(event));
  }
  if (place < 0) {
    leave();
    op.call_boxed(stack);
    return;
  }
  const std::shared_ptr<ThreadRecord> kept = t_record;
  struct End {
    ThreadRecord& record;
    int32_t place;
    ~End() { record.end(place); }
  } const ends{*kept, place};
  const ExcludeLayers below(Layer::Profiler);
  op.call_boxed(stack);
  if (kept->options.shapes) kept->add_traffic(place, traffic_of_results(op, stack));
}

// Every operator gets the layer when something is recorded for the first time.
void add_layer() {
  static const bool added = [] {
    Dispatcher::instance().register_layer_fallback(
        Layer::Profiler, boxed_kernel<&record_call>,
        KernelOrigin{KernelSource::Fallback, __FILE__, __LINE__, "profiler"});
    // A child of the process is not recorded: nobody would ever ask for it.
    pthread_atfork(nullptr, nullptr, [] {
      g_recording.reset();
      leave();
    });
    return true;
  }();
  (void)added;
}

void record_this_thread(Recording& recording) {
  t_record = std::make_shared<ThreadRecord>(recording.options, recording.number);
  recording.threads.push_back(t_record);
  layer_state().included |= layer_bit(Layer::Profiler);
}

}  // namespace

void start(Options options) {
  add_layer();
  const std::lock_guard lock(g_mutex);
  check<ErrorKind::Runtime>(!g_recording, OpName("profiler"),
                            "expected to start when nothing is recorded, ",
                            "got a recording that runs");
  g_recording = std::make_unique<Recording>(Recording{options, ++g_number, {}});
  record_this_thread(*g_recording);
}

std::vector<Event> stop() {
  std::unique_ptr<Recording> recording;
  {
    const std::lock_guard lock(g_mutex);
    check<ErrorKind::Runtime>(g_recording != nullptr, OpName("profiler"),
                              "expected to stop a recording, got none that runs");
    recording = std::move(g_recording);
  }
  std::vector<Event> all;
  for (const auto& thread : recording->threads) {
    const auto offset = static_cast<int32_t>(all.size());
    for (Event& event : thread->finish(thread == t_record)) {
      if (event.parent >= 0) event.parent += offset;
      all.push_back(std::move(event));
    }
  }
  leave();
  return all;
}

bool running() {
  const std::lock_guard lock(g_mutex);
  return g_recording != nullptr;
}

void join() {
  const std::lock_guard lock(g_mutex);
  if (g_recording && !(t_record && t_record->recording == g_recording->number))
    record_this_thread(*g_recording);
}

void set_stack_source(StackSource source) {
  g_stack_source.store(source, std::memory_order_release);
}

uint64_t begin(std::string name, EventKind kind) {
  ThreadRecord* record = this_thread();
  if (!record) return 0;
  Event event;
  event.name = std::move(name);
  event.kind = kind;
  add_stack(*record, event);
  const int32_t place = record->begin(std::move(event));
  return place < 0 ? 0 : (uint64_t{record->recording} << 32) | static_cast<uint32_t>(place);
}

void end(uint64_t event) {
  ThreadRecord* record = t_record.get();
  if (event == 0 || !record || record->recording != event >> 32) return;
  record->end(static_cast<int32_t>(event & 0xffffffff));
}

}  // namespace treadle::profiler
