// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/cpu/program.h"

#include <algorithm>
#include <complex>
#include <cstring>

#include "aten/backend/cpu/convert_vectors.h"
#include "aten/backend/cpu/non_temporal_stores.h"
#include "aten/backend/cpu/work_space.h"
#include "aten/engine/cpu/cascade.h"
#include "aten/engine/cpu/tiles.h"
#include "aten/engine/promotion.h"
#include "core/base/error.h"
#include "core/threads/parallel.h"

namespace treadle::simd {
namespace {

constexpr int64_t kTile = 2048;        // elements: of whole rows as many as fit, and at least one
constexpr int64_t kGrain = 32 * 1024;  // elements of a parallel chunk; a multiple of kTile
// Bytes of operands from which on they come from memory. Fewer lie in a cache that the cores share:
// to ask for them ahead takes longer than to wait for them.
constexpr int64_t kLarge = 32 * 1024 * 1024;

// Where the elements of a value lie in a tile: an operand, or a buffer behind all operands.
using Place = int;

// One loop over a tile: a block, a fold of its rows, a conversion, or rows that become elements.
enum class Kind : uint8_t { Block, Fold, Convert, Repeat };
struct Instruction {
  Kind kind;
  Extent extent;            // of what it writes
  const ProgramStep* step;  // of a block or a fold
  ConvertFn* convert;
  int64_t from_item, to_item;
  std::array<Place, ProgramStep::kMaxInputs> inputs;
  std::array<Place, ProgramStep::kMaxResults> outputs;
  bool is_last;  // no later instruction reads the outputs
};

template <class Bits>
void repeat(const void* from, int64_t rows, int64_t row, void* to) {
  for (int64_t r = 0; r < rows; ++r)
    std::fill_n(static_cast<Bits*>(to) + r * row, row, static_cast<const Bits*>(from)[r]);
}
// Makes a row of each element.
void repeat(const void* from, int64_t rows, int64_t row, int64_t item, void* to) {
  const ConvertVectors& vectors = convert_vectors();
  const char* const first = static_cast<const char*>(from);
  char* const place = static_cast<char*>(to);
  switch (item) {
    case 1:
      return repeat<uint8_t>(from, rows, row, to);
    case 2:
      return repeat<uint16_t>(from, rows, row, to);
    case 4:
      return vectors.repeat_4(first, item, rows, place, row);
    case 8:
      return vectors.repeat_8(first, item, rows, place, row);
    default:
      return repeat<std::complex<double>>(from, rows, row, to);
  }
}

// The memory of all buffers.
struct Room {
  const char *begin, *end;
  bool has(const void* p) const { return p >= begin && p < end; }
};

// Asks the memory for the next tile while the loops over this one run: they keep to the nearest
// cache, and the machine sees no stream.
class Ahead {
 public:
  Ahead(bool is_on, const std::vector<TileOperand>& operands, void* const* at, int64_t n,
        const Room& room, int loops) {
    if (!is_on || loops == 0) return;
    for (size_t k = 0; k < operands.size(); ++k) {
      if (operands[k].is_written || room.has(at[k])) continue;
      const int64_t bytes = n * item_size(operands[k].type);
      next_[count_++] = static_cast<const char*>(at[k]) + bytes;
      step_ = std::max(step_, (bytes / loops + 63) / 64 * 64);
      left_ = std::max(left_, bytes);
    }
  }

  // Once before each loop.
  void ask() {
    if (left_ <= 0) return;
    for (int k = 0; k < count_; ++k) {
      for (int64_t b = 0; b < step_; b += 64) __builtin_prefetch(next_[k] + b, 0, 2);
      next_[k] += step_;
    }
    left_ -= step_;
  }

 private:
  const char* next_[Tiles::kMaxOperands];
  int count_ = 0;
  int64_t step_ = 0, left_ = 0;
};

// The instructions of a program, with a place for each value, which has the type that its dtype is
// computed in (compute_of). Places are used again once the last
// step that reads their value has run.
class Plan {
 public:
  Plan(const Program& program, ArrayRef<PointwiseOperand> operands) : program_(program) {
    const int reads = program.reads(), writes = static_cast<int>(program.writes().size());
    check_internal(reads + writes <= Tiles::kMaxOperands, "a program has too many operands");
    for (int k = 0; k < reads + writes; ++k) {
      const int value = k < reads ? k : program.writes()[static_cast<size_t>(k - reads)];
      operands_.push_back(
          {operands[static_cast<size_t>(k)], compute_of(program.dtype(value)), k >= reads});
    }
    places_ = reads + writes;
    find_last_readers();
    places_of_.assign(static_cast<size_t>(program.values()), -1);
    for (int value = 0; value < reads; ++value) places_of_[static_cast<size_t>(value)] = value;
    int value = reads;
    for (int s = 0; s < static_cast<int>(program.steps().size()); ++s) {
      add(s, value);
      value += program.steps()[static_cast<size_t>(s)].result_count;
    }
    for (int w = 0; w < writes; ++w) {
      const int value = program.writes()[static_cast<size_t>(w)];
      const ScalarType type = compute_of(program.dtype(value));
      if (place_of(value) != reads + w)
        add_conversion(place_of(value), type, reads + w, type, program.extent(value));
    }
  }

  const std::vector<TileOperand>& operands() const { return operands_; }
  Place place_of(int value) const { return places_of_[static_cast<size_t>(value)]; }
  int loops() const { return static_cast<int>(instructions_.size()); }
  int buffers() const { return places_ - static_cast<int>(operands_.size()); }
  int64_t largest_item() const { return largest_item_; }
  bool has_rows() const { return program_.row() != 0; }

  // n elements, of whole rows where there are rows. `streams`: results that are written where they
  // belong go past the caches.
  void run(void* const* at, int64_t n, const Room& room, bool streams, Ahead& ahead) const {
    const int64_t rows = has_rows() ? n / program_.row() : 0;
    for (const Instruction& i : instructions_) {
      ahead.ask();
      const int64_t count = i.extent == Extent::Rows ? rows : n;
      void* const out = at[i.outputs[0]];
      const void* const first = at[i.inputs[0]];
      switch (i.kind) {
        case Kind::Block:
          run_block(i, at, count, room, streams);
          break;
        case Kind::Fold: {
          const int64_t row = program_.row();
          const ReduceFunctions& fold = *i.step->fold;
          fold.inner(out, first, row, rows, row * i.from_item);
          fold.final(out, rows, static_cast<double>(row));
          break;
        }
        case Kind::Convert:
          i.convert(static_cast<const char*>(first), i.from_item, static_cast<char*>(out),
                    i.to_item, count);
          break;
        case Kind::Repeat:
          repeat(first, rows, program_.row(), i.to_item, out);
          break;
      }
    }
  }

 private:
  static void run_block(const Instruction& i, void* const* at, int64_t n, const Room& room,
                        bool streams) {
    const ProgramStep& step = *i.step;
    const void* in[ProgramStep::kMaxInputs];
    void* out[ProgramStep::kMaxResults];
    for (int k = 0; k < step.input_count; ++k) in[k] = at[i.inputs[static_cast<size_t>(k)]];
    bool past = streams && i.is_last;
    for (int r = 0; r < step.result_count; ++r) {
      out[r] = at[i.outputs[static_cast<size_t>(r)]];
      past = past && !room.has(out[r]) && cpu::NonTemporalStores::until_line(out[r]) == 0;
    }
    const Pass pass = past ? Pass::PastCaches : Pass::InOrder;
    if (step.fused != nullptr)
      step.fused(out, in, step.scalars, n, pass);
    else
      step.block(out[0], in, step.scalars, n, pass);
  }

  void find_last_readers() {
    last_reader_.assign(static_cast<size_t>(program_.values()), -1);
    const int steps = static_cast<int>(program_.steps().size());
    for (int s = 0; s < steps; ++s) {
      const ProgramStep& step = program_.steps()[static_cast<size_t>(s)];
      for (int k = 0; k < step.input_count; ++k)
        last_reader_[static_cast<size_t>(step.inputs[static_cast<size_t>(k)])] = s;
    }
    for (const int value : program_.writes()) last_reader_[static_cast<size_t>(value)] = steps;
    for (const ProgramTotal& t : program_.totals())
      last_reader_[static_cast<size_t>(t.value)] = steps;
  }

  bool is_read(int value) const {
    const auto& steps = program_.steps();
    return std::any_of(steps.begin(), steps.end(), [&](const ProgramStep& step) {
      const auto end = step.inputs.begin() + step.input_count;
      return std::find(step.inputs.begin(), end, value) != end;
    });
  }

  // The operand that a value is written to; -1 where there is none.
  int written_to(int value) const {
    const auto& writes = program_.writes();
    const auto found = std::find(writes.begin(), writes.end(), value);
    return found == writes.end() ? -1 : program_.reads() + static_cast<int>(found - writes.begin());
  }

  Place take() {
    if (free_.empty()) return places_++;
    const Place place = free_.back();
    free_.pop_back();
    return place;
  }
  void give_back(Place place) {
    if (place >= static_cast<Place>(operands_.size())) free_.push_back(place);
  }

  void add_conversion(Place from, ScalarType from_type, Place to, ScalarType to_type, Extent extent,
                      Kind kind = Kind::Convert) {
    note(from_type);
    note(to_type);
    instructions_.push_back({kind,
                             extent,
                             nullptr,
                             converter(from_type, to_type),
                             item_size(from_type),
                             item_size(to_type),
                             {from},
                             {to},
                             false});
  }
  void note(ScalarType type) { largest_item_ = std::max(largest_item_, item_size(type)); }

  // Adds a step whose results are the values from `first` on.
  void add(int s, int first) {
    const ProgramStep& step = program_.steps()[static_cast<size_t>(s)];
    Instruction loop{};
    loop.kind = step.fold ? Kind::Fold : Kind::Block;
    loop.extent = step.extent;
    loop.step = &step;
    loop.from_item = item_size(step.compute);
    std::vector<Place> passing;
    for (size_t k = 0; k < static_cast<size_t>(step.input_count); ++k) {
      const int value = step.inputs[k];
      const ScalarType type = compute_of(program_.dtype(value));
      const bool repeats =
          !step.fold && step.extent == Extent::Elements && program_.extent(value) == Extent::Rows;
      Place from = place_of(value);
      const auto pass = [&](Place to) {
        passing.push_back(to);
        return to;
      };
      if (type != step.compute) {
        const Place to = pass(take());
        add_conversion(from, type, to, step.compute, program_.extent(value));
        from = to;
      }
      if (repeats) {
        const Place to = pass(take());
        add_conversion(from, step.compute, to, step.compute, Extent::Elements, Kind::Repeat);
        from = to;
      }
      loop.inputs[k] = from;
    }
    // The result may take the place of a value that is read for the last time, since a block reads
    // each element before it writes the one at its place. But a result of smaller elements may not.
    for (const Place place : passing) give_back(place);
    for (size_t k = 0; k < static_cast<size_t>(step.input_count); ++k) {
      const int value = step.inputs[k];
      int& last = last_reader_[static_cast<size_t>(value)];
      if (last != s) continue;
      last = -1;  // an argument may be given twice
      give_back(place_of(value));
    }
    note(step.compute);
    loop.is_last = true;
    for (size_t r = 0; r < static_cast<size_t>(step.result_count); ++r) {
      const StepResult& result = step.results[r];
      const int value = first + static_cast<int>(r);
      const Place own = written_to(value);
      note(result.written);
      const bool same_items = !step.fold && item_size(result.written) == item_size(step.compute);
      loop.outputs[r] = own >= 0 && result.written == compute_of(result.dtype) ? own
                        : same_items                                           ? take()
                                                                               : places_++;
      loop.is_last = loop.is_last && loop.outputs[r] == own && !needs_rounding(result) &&
                     std::count(program_.writes().begin(), program_.writes().end(), value) == 1 &&
                     !is_read(value);
    }
    instructions_.push_back(loop);
    for (size_t r = 0; r < static_cast<size_t>(step.result_count); ++r)
      finish(step.results[r], loop.outputs[r], first + static_cast<int>(r), step.extent);
  }

  static bool needs_rounding(const StepResult& result) {
    return !result.is_rounded && compute_of(result.dtype) != result.dtype;
  }

  // Brings a result to the type that its dtype is computed in, rounded as the dtype is.
  void finish(const StepResult& result, Place place, int value, Extent extent) {
    const ScalarType type = compute_of(result.dtype);
    if (result.written != type) {
      const Place own = written_to(value);
      const Place to = own >= 0 ? own : places_++;
      add_conversion(place, result.written, to, type, extent);
      give_back(place);
      place = to;
    }
    if (needs_rounding(result)) {
      const Place narrow = places_++;
      add_conversion(place, type, narrow, result.dtype, extent);
      add_conversion(narrow, result.dtype, place, type, extent);
      give_back(narrow);
    }
    places_of_[static_cast<size_t>(value)] = place;
    if (last_reader_[static_cast<size_t>(value)] < 0) give_back(place);  // nobody reads it
  }

  const Program& program_;
  std::vector<TileOperand> operands_;
  std::vector<Instruction> instructions_;
  std::vector<int> last_reader_, places_of_;
  std::vector<Place> free_;
  int places_ = 0;
  int64_t largest_item_ = 1;
};

}  // namespace

int Program::read(ScalarType dtype, Extent extent) {
  check_internal(steps_.empty(), "a program reads its operands before its first step");
  dtypes_.push_back(dtype);
  extents_.push_back(extent);
  return reads_++;
}

int Program::add(const ProgramStep& step) {
  check_internal(row_ != 0 || step.extent == Extent::Elements, "a program without rows folds none");
  const int first = values();
  for (int r = 0; r < step.result_count; ++r) {
    dtypes_.push_back(step.results[static_cast<size_t>(r)].dtype);
    extents_.push_back(step.extent);
  }
  steps_.push_back(step);
  return first;
}

void Program::write(int value) { writes_.push_back(value); }

namespace {

// The operands of one extent, and where they stand among all.
struct Operands {
  std::vector<TileOperand> tiles;
  std::vector<int> places;

  ArrayRef<TileOperand> list() const { return {tiles.data(), tiles.size()}; }
  void put(void* const* at, std::vector<void*>& all) const {
    for (size_t k = 0; k < places.size(); ++k) all[static_cast<size_t>(places[k])] = at[k];
  }
};

Operands operands_of(const Program& program, const Plan& plan, Extent extent) {
  Operands found;
  for (int k = 0; k < static_cast<int>(plan.operands().size()); ++k) {
    const int value =
        k < program.reads() ? k : program.writes()[static_cast<size_t>(k - program.reads())];
    if (program.extent(value) != extent) continue;
    found.tiles.push_back(plan.operands()[static_cast<size_t>(k)]);
    found.places.push_back(k);
  }
  return found;
}

// The totals of a program: each chunk of elements has a partial one, joined from its pieces.
class Totals {
 public:
  Totals(const Program& program, int64_t numel)
      : program_(program), chunks_((numel + kChunk - 1) / kChunk), numel_(numel) {
    for (const ProgramTotal& t : program.totals())
      partial_.emplace_back(static_cast<size_t>(chunks_ * item(t)));
  }

  int64_t chunks() const { return chunks_; }

  // The pieces of one chunk, in order.
  class Chunk {
   public:
    Chunk(Totals& all, int64_t chunk) : all_(all), chunk_(chunk) {
      for (const ProgramTotal& t : all.program_.totals())
        cascades_.emplace_back(*t.fold, 1, all.item(t));
    }
    void add(const Plan& plan, void* const* at, int64_t n) {
      alignas(64) char acc[kLargestItem];
      for (size_t k = 0; k < cascades_.size(); ++k) {
        const ProgramTotal& t = all_.program_.totals()[k];
        t.fold->inner(acc, at[plan.place_of(t.value)], n, 1, 0);
        cascades_[k].push(acc);
      }
    }
    void finish() {
      for (size_t k = 0; k < cascades_.size(); ++k) {
        const auto bytes = static_cast<size_t>(all_.item(all_.program_.totals()[k]));
        std::memcpy(all_.partial_[k].data() + static_cast<size_t>(chunk_) * bytes,
                    cascades_[k].finish(), bytes);
      }
    }

   private:
    Totals& all_;
    int64_t chunk_;
    std::vector<Cascade> cascades_;
  };

  void write() const {
    for (size_t k = 0; k < partial_.size(); ++k) {
      const ProgramTotal& t = program_.totals()[k];
      Cascade cascade(*t.fold, 1, item(t));
      for (int64_t c = 0; c < chunks_; ++c) cascade.push(partial_[k].data() + c * item(t));
      alignas(64) char acc[kLargestItem];
      std::memcpy(acc, cascade.finish(), static_cast<size_t>(item(t)));
      t.fold->final(acc, 1, static_cast<double>(numel_));
      converter(type(t), t.dtype)(acc, item(t), static_cast<char*>(t.result), item_size(t.dtype),
                                  1);
    }
  }

 private:
  static constexpr size_t kLargestItem = 16;

  ScalarType type(const ProgramTotal& t) const { return compute_of(program_.dtype(t.value)); }
  int64_t item(const ProgramTotal& t) const { return item_size(type(t)); }

  const Program& program_;
  int64_t chunks_, numel_;
  std::vector<std::vector<char>> partial_;
};

}  // namespace

void run_program(const Program& program, ArrayRef<PointwiseOperand> operands, IntList shape,
                 IntList rows) {
  const Plan plan(program, operands);
  const Operands elements = operands_of(program, plan, Extent::Elements),
                 of_rows = operands_of(program, plan, Extent::Rows);
  const Tiles tiles(elements.list(), shape);
  const int64_t numel = product(shape), row = std::max<int64_t>(1, program.row());
  const bool has_totals = !program.totals().empty();
  const int64_t tile = has_totals ? kPiece : std::max<int64_t>(1, kTile / row) * row;
  const auto count = static_cast<int64_t>(plan.operands().size());
  int64_t largest = plan.largest_item();
  for (const TileOperand& operand : plan.operands())
    largest = std::max(largest, item_size(operand.type));
  const int64_t bytes = tile * largest / 64 * 64 + 64;
  int64_t written = 0, touched = 0;
  for (const TileOperand& operand : elements.tiles)
    (operand.is_written ? written : touched) += numel * item_size(operand.type);
  touched += written;
  const cpu::NonTemporalStores writes(written);
  Totals totals(program, numel);
  const auto run_rows = [&](int64_t begin, int64_t end, Totals::Chunk* chunk) {
    const int64_t room_bytes = (count + plan.buffers()) * bytes;
    const cpu::WorkSpace<uint8_t> memory(room_bytes);
    const TileBuffers all{reinterpret_cast<char*>(memory.data()), bytes, tile};
    const Room room{all.first, all.first + room_bytes};
    std::vector<void*> places(static_cast<size_t>(count + plan.buffers()));
    for (int64_t k = 0; k < plan.buffers(); ++k)
      places[static_cast<size_t>(count + k)] = all.of(static_cast<int>(count + k));
    // Operands of elements have the first buffers, those of rows the ones behind.
    const TileBuffers for_rows{all.of(static_cast<int>(elements.tiles.size())), bytes, tile / row};
    const auto run = [&](void* const* at, int64_t n) {
      elements.put(at, places);
      Ahead ahead(touched >= kLarge, elements.tiles, at, n, room, plan.loops());
      plan.run(places.data(), n, room, writes.on(), ahead);
      if (chunk != nullptr) chunk->add(plan, places.data(), n);
    };
    if (!plan.has_rows() && !has_totals) {
      tiles.run(begin, end, all, kTile, run);
    } else if (of_rows.tiles.empty()) {
      tiles.run_whole(begin * row, end * row, all, run);
    } else {
      const Tiles row_tiles(of_rows.list(), rows);
      for (int64_t r = begin; r < end; r += tile / row) {
        const int64_t last = std::min(end, r + tile / row);
        row_tiles.run_whole(r, last, for_rows, [&](void* const* at, int64_t) {
          of_rows.put(at, places);
          tiles.run_whole(r * row, last * row, all, run);
        });
      }
    }
    writes.finish();
  };
  if (has_totals) {
    parallel_chunks(totals.chunks(), [&](int64_t unit) {
      Totals::Chunk chunk(totals, unit);
      run_rows(unit * kChunk, std::min(numel, (unit + 1) * kChunk), &chunk);
      chunk.finish();
    });
    totals.write();
  } else {
    parallel_for(numel / row, std::max<int64_t>(1, kGrain / row),
                 [&](int64_t begin, int64_t end) { run_rows(begin, end, nullptr); });
  }
}

}  // namespace treadle::simd
