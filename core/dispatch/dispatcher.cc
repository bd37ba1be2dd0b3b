// The dispatcher's record of registrations. The cells of kernel tables are computed from it.
//
// A cell holds the registration with the highest precedence, in whatever order they came. So tables
// do not depend on the order in which libraries load, and removing a registration uncovers the one
// beneath it.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/dispatch/dispatcher.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/base/fork_safe_mutex.h"
#include "core/device/backend.h"
#include "core/schema/function_schema.h"

namespace treadle {
namespace {

// One registration for a row: unboxed kernels by dtype, or one boxed kernel for the dtypes of
// `covers`.
struct RowEntry {
  std::array<void*, kMaxScalarTypes> kernels{};
  std::array<bool, kMaxScalarTypes> covers{};
  const BoxedKernel* boxed = nullptr;
  const KernelOrigin* place = nullptr;
};

// All that is known about one row of one table.
struct RowRecord {
  const KernelRow* generated = nullptr;  // what was there at compile time
  std::vector<RowEntry> entries;
};
using RowKey = std::tuple<KernelTable*, DeviceType, Layout>;

struct LayerFallback {
  const BoxedKernel* kernel = nullptr;
  const KernelOrigin* place = nullptr;
  Dispatcher::Wraps which = Dispatcher::Wraps::All;

  bool wraps(const Operator& op) const {
    if (!kernel) return false;
    if (which == Dispatcher::Wraps::Seen) return op.entry().seen != Seen::Never;
    return which == Dispatcher::Wraps::All || !op.entry().data_free;
  }
};

// "aten/ops/indexing/cpu/gather.cc:12"; what is no file has no line.
std::string place_text(const KernelOrigin& place) {
  return place.line ? str(place.file, ":", place.line) : std::string(place.file);
}

const char* dtype_separator(const std::string& text) { return text.empty() ? "" : ", "; }

KernelSource source_of(const KernelRow& row, size_t t) {
  return row.places[t] ? row.places[t]->source : KernelSource::Generated;
}

bool has_kernel(const KernelRow& row) {
  for (size_t t = 0; t < kMaxScalarTypes; ++t) {
    if (row.kernels[t] || row.boxed[t]) return true;
  }
  return false;
}

}  // namespace

struct Dispatcher::State {
  mutable ForkSafeMutex mutex;
  std::unordered_map<std::string_view, Operator*> by_name;
  mutable std::vector<Operator*> sorted;  // by name, when `is_sorted`
  mutable bool is_sorted = true;
  std::map<RowKey, RowRecord> rows;
  std::deque<KernelRow> published;  // rows in use and rows that calls may still be reading
  std::deque<KernelOrigin> places;
  std::deque<BoxedKernel> kernels;  // that rows, layers and fallbacks point to, or did
  std::set<std::string> texts;      // what places point to
  std::array<std::atomic<const BoxedKernel*>, kMaxDeviceTypes> device_fallbacks{};
  std::array<const KernelOrigin*, kMaxDeviceTypes> device_fallback_places{};
  std::array<LayerFallback, kNumLayers> layer_fallbacks{};
  std::vector<std::string> errors;

  // A place that lives for ever: the library it came from may be unloaded, a text from Python may
  // be freed.
  const KernelOrigin* keep(KernelOrigin place) {
    place.file = texts.emplace(place.file ? place.file : "").first->c_str();
    place.name = texts.emplace(place.name ? place.name : "").first->c_str();
    return &places.emplace_back(place);
  }
  const BoxedKernel* keep(BoxedKernel kernel) { return &kernels.emplace_back(kernel); }

  RowRecord& record(KernelTable& table, DeviceType device, Layout layout) {
    const auto [it, fresh] = rows.try_emplace(RowKey(&table, device, layout));
    if (fresh) it->second.generated = table.row(device, layout);
    return it->second;
  }

  // Throws when an entry of the same source has one of the cells already.
  void reject_duplicate(const Operator& op, const RowRecord& record, const RowEntry& entry,
                        DeviceType device, Layout layout) {
    for (const RowEntry& other : record.entries) {
      if (other.place->source != entry.place->source) continue;
      std::string both;
      for (int t = 0; t < kNumScalarTypes; ++t) {
        if (other.covers[t] && entry.covers[t])
          both += str(dtype_separator(both), name_of(static_cast<ScalarType>(t)));
      }
      check<ErrorKind::Runtime>(both.empty(), OpName(op.info().name), "expected one kernel for ",
                                name_of(device), ", ", name_of(layout), ", ", both,
                                ", got a second at ", place_text(*entry.place),
                                "\nthe first is at ", place_text(*other.place));
    }
  }

  void add_entry(Operator& op, DeviceType device, Layout layout, const RowEntry& entry) {
    RowRecord& row = record(op.table(), device, layout);
    reject_duplicate(op, row, entry, device, layout);
    row.entries.push_back(entry);
    publish(op.table(), device, layout, row);
  }

  static KernelRow best_row(const RowRecord& record) {
    KernelRow row = record.generated ? *record.generated : KernelRow();
    for (size_t t = 0; t < kMaxScalarTypes; ++t) {
      const bool filled = row.kernels[t] || row.boxed[t];
      int best = filled ? static_cast<int>(source_of(row, t)) : INT32_MAX;
      for (const RowEntry& entry : record.entries) {
        const int source = static_cast<int>(entry.place->source);
        if (!entry.covers[t] || source > best) continue;
        best = source;
        row.kernels[t] = entry.kernels[t];
        row.boxed[t] = entry.boxed;
        row.places[t] = entry.place;
      }
    }
    return row;
  }

  void publish(KernelTable& table, DeviceType device, Layout layout, const RowRecord& record) {
    table.publish(device, layout, &published.emplace_back(best_row(record)));
  }
};

Dispatcher::Dispatcher() : state_(new State) {}
Dispatcher::~Dispatcher() { delete state_; }

Dispatcher& Dispatcher::instance() {
  // Never destroyed: kernels run while the program ends.
  static auto* dispatcher = new Dispatcher;
  return *dispatcher;
}

// ---- operators ----------------------------------------------------------------------------------

void Dispatcher::add_shard(const OperatorShard& shard) {
  for (size_t i = 0; i < shard.count; ++i) {
    try {
      add_operator(*shard.operators[i]);
    } catch (const Error& error) {
      record_registration_error(error.what());
    }
  }
}

void Dispatcher::add_operator(Operator& op) {
  const std::lock_guard lock(state_->mutex);
  const OperatorInfo& info = op.info();
  const auto [it, fresh] = state_->by_name.try_emplace(info.name, &op);
  if (!fresh) {
    const EntryInfo &here = *info.entry, &there = it->second->entry();
    fail<ErrorKind::Value>("expected a new operator name, got ", info.name, " at ", here.file, ":",
                           here.line(), "\nit is defined already at ", there.file, ":",
                           there.line());
  }
  state_->sorted.push_back(&op);
  state_->is_sorted = false;
  for (int l = 0; l < kNumLayers; ++l) {
    const LayerFallback& fallback = state_->layer_fallbacks[static_cast<size_t>(l)];
    if (fallback.wraps(op))
      op.set_layer(static_cast<Layer>(l), nullptr, fallback.kernel, *fallback.place);
  }
}

void Dispatcher::remove_operator(Operator& op) {
  const std::lock_guard lock(state_->mutex);
  const auto it = state_->by_name.find(op.info().name);
  if (it == state_->by_name.end() || it->second != &op) return;
  state_->by_name.erase(it);
  std::erase(state_->sorted, &op);
  if (op.has_table())
    std::erase_if(state_->rows,
                  [&](const auto& row) { return std::get<0>(row.first) == &op.table(); });
}

Operator* Dispatcher::find(std::string_view name) const {
  const std::lock_guard lock(state_->mutex);
  const auto it = state_->by_name.find(name);
  return it == state_->by_name.end() ? nullptr : it->second;
}

Operator& Dispatcher::at(std::string_view name) const {
  if (Operator* op = find(name)) return *op;
  std::vector<std::string> known;
  for (const Operator* op : operators()) known.emplace_back(op->info().name);
  const std::string hint = schema::did_you_mean(name, known);
  fail<ErrorKind::Runtime>("expected the name of an operator, got '", name, "'",
                           hint.empty() ? "" : "; ", hint);
}

std::vector<Operator*> Dispatcher::operators() const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->is_sorted) {
    std::sort(state_->sorted.begin(), state_->sorted.end(),
              [](const Operator* a, const Operator* b) {
                return std::string_view(a->info().name) < b->info().name;
              });
    state_->is_sorted = true;
  }
  return state_->sorted;
}

// ---- registration -------------------------------------------------------------------------------

void Dispatcher::register_row(Operator& op, DeviceType device, Layout layout,
                              const std::array<void*, kMaxScalarTypes>& kernels,
                              const KernelOrigin& place) {
  check<ErrorKind::Runtime>(
      op.has_table(), OpName(op.info().name),
      "expected an operator with kernels of its own, got one made of others; the kernel is at ",
      place_text(place));
  const std::lock_guard lock(state_->mutex);
  RowEntry entry;
  entry.kernels = kernels;
  entry.place = state_->keep(place);
  for (size_t t = 0; t < kMaxScalarTypes; ++t) entry.covers[t] = kernels[t] != nullptr;
  state_->add_entry(op, device, layout, entry);
}

void Dispatcher::register_boxed(std::string_view name, std::string_view schema, DeviceType device,
                                Layout layout, const std::vector<ScalarType>& dtypes,
                                BoxedKernel kernel, KernelOrigin place) {
  Operator& op = at(name);
  check<ErrorKind::Value>(kernel.function != nullptr, OpName(name),
                          "expected a kernel to register, got none");
  check<ErrorKind::Runtime>(op.has_table() && !op.entry().data_free, OpName(name),
                            "expected an operator with kernels of its own, got one made of others");
  schema::FunctionSchema given;
  try {
    given = schema::parse_schema(schema);
  } catch (const schema::SchemaError& error) {
    fail<ErrorKind::Value>(
        OpName(name), "expected the schema of the kernel, got one with an error:\n", error.what());
  }
  // The library's own namespace may be left out.
  if (given.name.ns == "aten") given.name.ns.clear();
  const std::string text = schema::print(given);
  std::string_view expected = op.info().schema;
  if (expected.starts_with("aten::")) expected.remove_prefix(6);
  check<ErrorKind::Runtime>(text == expected, OpName(name),
                            "expected a kernel for the operator's schema\n  ", expected,
                            "\ngot one, at ", place_text(place), ", for\n  ", text);
  const bool all = dtypes.empty() || place.source == KernelSource::DeviceLayout;
  place.source = all ? KernelSource::DeviceLayout : KernelSource::Exact;

  const std::lock_guard lock(state_->mutex);
  RowEntry entry;
  entry.boxed = state_->keep(kernel);
  entry.place = state_->keep(place);
  if (dtypes.empty()) std::fill_n(entry.covers.begin(), kNumScalarTypes, true);
  for (ScalarType t : dtypes) entry.covers[static_cast<size_t>(t)] = true;
  state_->add_entry(op, device, layout, entry);
}

void Dispatcher::register_layout(Operator& op, Layout layout, BoxedKernel kernel,
                                 KernelOrigin place) {
  check<ErrorKind::Value>(layout != Layout::Strided && op.has_table(), OpName(op.info().name),
                          "expected a kernel of another layout than strided, got one of ",
                          name_of(layout));
  const std::lock_guard lock(state_->mutex);
  place.source = KernelSource::DeviceLayout;
  RowEntry entry;
  entry.boxed = state_->keep(kernel);
  entry.place = state_->keep(place);
  std::fill_n(entry.covers.begin(), kNumScalarTypes, true);
  state_->add_entry(op, kEveryDevice, layout, entry);
}

void Dispatcher::deregister(std::string_view name, DeviceType device, Layout layout) {
  Operator& op = at(name);
  const std::lock_guard lock(state_->mutex);
  const auto it =
      op.has_table() ? state_->rows.find(RowKey(&op.table(), device, layout)) : state_->rows.end();
  check<ErrorKind::Runtime>(it != state_->rows.end() && !it->second.entries.empty(), OpName(name),
                            "expected a registration for ", name_of(device), ", ", name_of(layout),
                            " to take back, got none");
  it->second.entries.clear();
  state_->publish(op.table(), device, layout, it->second);
}

void Dispatcher::register_device_fallback(DeviceType device, BoxedKernel kernel,
                                          KernelOrigin place) {
  const std::lock_guard lock(state_->mutex);
  const size_t d = static_cast<size_t>(device);
  if (const KernelOrigin* there = state_->device_fallback_places[d]) {
    fail<ErrorKind::Runtime>("expected one fallback for the device ", name_of(device),
                             ", got a second at ", place_text(place), "\nthe first is at ",
                             place_text(*there));
  }
  place.source = KernelSource::Fallback;
  state_->device_fallback_places[d] = state_->keep(place);
  state_->device_fallbacks[d].store(state_->keep(kernel), std::memory_order_release);
}

void Dispatcher::deregister_device_fallback(DeviceType device) {
  const std::lock_guard lock(state_->mutex);
  const size_t d = static_cast<size_t>(device);
  state_->device_fallbacks[d].store(nullptr, std::memory_order_release);
  state_->device_fallback_places[d] = nullptr;
}

const BoxedKernel* Dispatcher::device_fallback(DeviceType device) const {
  return state_->device_fallbacks[static_cast<size_t>(device)].load(std::memory_order_acquire);
}

void Dispatcher::register_layer_fallback(Layer layer, BoxedKernel kernel, KernelOrigin place,
                                         Wraps wraps) {
  const std::lock_guard lock(state_->mutex);
  LayerFallback& fallback = state_->layer_fallbacks[static_cast<size_t>(layer)];
  if (fallback.kernel) {
    fail<ErrorKind::Runtime>("expected one fallback for the layer ", name_of(layer),
                             ", got a second at ", place_text(place), "\nthe first is at ",
                             place_text(*fallback.place));
  }
  place.source = KernelSource::Fallback;
  fallback = {state_->keep(kernel), state_->keep(place), wraps};
  for (Operator* op : state_->sorted) {
    if (fallback.wraps(*op)) op->set_layer(layer, nullptr, fallback.kernel, *fallback.place);
  }
}

void Dispatcher::record_registration_error(std::string message) {
  const std::lock_guard lock(state_->mutex);
  state_->errors.push_back(std::move(message));
}

std::vector<std::string> Dispatcher::take_registration_errors() {
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->errors, {});
}

void Dispatcher::check_registrations() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->errors.empty()) return;
  std::string text = state_->errors.front();
  if (state_->errors.size() > 1)
    text += str("\nand ", state_->errors.size() - 1, " more errors in registrations");
  throw Error(ErrorKind::Runtime, text);
}

// ---- questions ----------------------------------------------------------------------------------

std::string Dispatcher::dump(std::string_view name) const {
  const Operator& op = at(name);
  std::string text;
  const auto line = [&](std::string_view what, std::string_view source, const KernelOrigin& place) {
    text += str(op.info().name, "  ", what, "  ", source, "  ", place_text(place),
                place.name && *place.name ? "  " : "", place.name ? place.name : "", "\n");
  };
  for (int l = 0; l < kNumLayers; ++l) {
    const auto layer = static_cast<Layer>(l);
    if (!(op.layers() & layer_bit(layer))) continue;
    line(str("layer ", name_of(layer)), name_of(op.layer_place(layer).source),
         op.layer_place(layer));
  }
  for (int d = 0; op.has_table() && d < num_device_types(); ++d) {
    for (int l = 0; l < kMaxLayouts; ++l) {
      const auto device = static_cast<DeviceType>(d);
      const auto layout = static_cast<Layout>(l);
      const KernelRow* row = op.table().row(device, layout);
      if (!row) continue;
      for (size_t t = 0; t < kNumScalarTypes; ++t) {
        if (!row->kernels[t] && !row->boxed[t]) continue;
        const KernelOrigin entry{KernelSource::Generated, op.entry().file, op.entry().line(), ""};
        // A generated kernel stands where its entry does.
        const KernelOrigin& place =
            row->places[t] && row->places[t]->line ? *row->places[t] : entry;
        line(str(name_of(device), " ", name_of(layout), " ", name_of(static_cast<ScalarType>(t))),
             name_of(place.source), place);
      }
    }
  }
  const std::lock_guard lock(state_->mutex);
  for (int d = 0; d < num_device_types(); ++d) {
    const KernelOrigin* place = state_->device_fallback_places[static_cast<size_t>(d)];
    if (place) line(name_of(static_cast<DeviceType>(d)), name_of(place->source), *place);
  }
  return text;
}

std::vector<std::string> Dispatcher::check_invariants() const {
  std::vector<std::string> broken;
  const std::vector<Operator*> all = operators();
  for (const Operator* op : all) {
    const OperatorInfo& info = op->info();
    const auto wrong = [&](const auto&... parts) {
      broken.push_back(
          str(info.entry->file, ":", info.entry->line(), ": ", info.name, ": ", parts...));
    };
    try {
      const schema::FunctionSchema parsed = schema::parse_schema(info.schema);
      if (schema::print(parsed) != info.schema) wrong("the schema does not print as it is written");
      // The library's own namespace is left out of its schemas.
      const std::string name = schema::print(parsed.name);
      if (name != info.name && "aten::" + name != info.name) wrong("the schema is of ", name);
    } catch (const schema::SchemaError& error) {
      wrong("the schema has an error: ", error.what());
    }
    const Operator& first = *info.entry->op;
    if (find(first.info().name) != &first)
      wrong("the entry's operator ", first.info().name, " does not exist");
    else if (first.has_table() && op->has_table() && &first.table() != &op->table())
      wrong("the forms do not share their kernels");
    for (int l = 0; l < kNumLayers; ++l) {
      const auto layer = static_cast<Layer>(l);
      const bool on = op->layers() & layer_bit(layer);
      if (on != (op->layer_function(layer) || op->layer_boxed(layer)))
        wrong("layer ", name_of(layer), " is on without a function");
    }
  }
  const std::lock_guard lock(state_->mutex);
  for (const auto& [key, record] : state_->rows) {
    const auto& [table, device, layout] = key;
    const KernelRow* row = table->row(device, layout);
    const KernelRow best = State::best_row(record);
    if (!row || row->kernels != best.kernels || row->boxed != best.boxed ||
        row->places != best.places) {
      broken.push_back(str("a row for ", name_of(device), ", ", name_of(layout),
                           " is not the best of its registrations"));
    }
  }
  broken.insert(broken.end(), state_->errors.begin(), state_->errors.end());
  return broken;
}

std::vector<std::string> Dispatcher::dangling_kernels() const {
  std::vector<std::string> dangling;
  for (const Operator* op : operators()) {
    const EntryInfo& entry = op->entry();
    const bool needs = entry.kind == OperatorKind::Kernel || entry.kind == OperatorKind::Returns ||
                       entry.kind == OperatorKind::Mutating;
    if (!needs || entry.data_free || !op->has_table() || entry.op != op) continue;
    for (const DtypeRow& dtypes : entry.dtypes) {
      if (dtypes.device == nullptr) continue;
      for (int d = 0; d < num_device_types(); ++d) {
        const auto device = static_cast<DeviceType>(d);
        if (name_of(device) != dtypes.device) continue;
        // The kernels of another device come with its backend.
        if (device != DeviceType::CPU && !backend_of(device)) continue;
        const KernelRow* row = op->table().row(device, Layout::Strided);
        if (row && has_kernel(*row)) continue;
        dangling.push_back(str(entry.file, ":", entry.line(), ": ", op->info().name,
                               ": the entry names a kernel for ", dtypes.device,
                               ", nothing registers one"));
      }
    }
  }
  return dangling;
}

}  // namespace treadle
