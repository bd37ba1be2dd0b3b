// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/cpu/program.h"

#include <algorithm>

#include "aten/backend/cpu/non_temporal_stores.h"
#include "aten/backend/cpu/work_space.h"
#include "aten/engine/cpu/tiles.h"
#include "aten/engine/promotion.h"
#include "core/base/error.h"
#include "core/base/parallel.h"

namespace treadle::simd {
namespace {

constexpr int64_t kTile = 2048;        // elements
constexpr int64_t kGrain = 32 * 1024;  // elements of a parallel chunk; a multiple of kTile

// Where the elements of a value lie in a tile: an operand, or a buffer behind all operands.
using Place = int;

// One loop over a tile: a block, or a conversion.
struct Instruction {
  const ProgramStep* step;  // null for a conversion
  ConvertFn* convert;
  int64_t from_item, to_item;
  std::array<Place, kMaxPointwiseInputs> inputs;
  Place output;
  bool is_last;  // no later instruction reads the output
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
    for (int s = 0; s < static_cast<int>(program.steps().size()); ++s) add(s);
    for (int w = 0; w < writes; ++w) {
      const int value = program.writes()[static_cast<size_t>(w)];
      const ScalarType type = compute_of(program.dtype(value));
      if (place_of(value) != reads + w) add_conversion(place_of(value), type, reads + w, type);
    }
  }

  const std::vector<TileOperand>& operands() const { return operands_; }
  int buffers() const { return places_ - static_cast<int>(operands_.size()); }
  int64_t largest_item() const { return largest_item_; }

  // `streams`: results that are written where they belong go past the caches.
  void run(void* const* at, int64_t n, const TileBuffers& buffers, bool streams) const {
    for (const Instruction& i : instructions_) {
      if (i.step) {
        const void* in[kMaxPointwiseInputs];
        for (int k = 0; k < i.step->input_count; ++k) in[k] = at[i.inputs[static_cast<size_t>(k)]];
        void* const out = at[i.output];
        const bool past = streams && i.is_last && out != buffers.of(i.output) &&
                          cpu::NonTemporalStores::until_line(out) == 0;
        i.step->block(out, in, i.step->scalars, n, past ? Pass::PastCaches : Pass::InOrder);
      } else {
        i.convert(static_cast<const char*>(at[i.inputs[0]]), i.from_item,
                  static_cast<char*>(at[i.output]), i.to_item, n);
      }
    }
  }

 private:
  void find_last_readers() {
    last_reader_.assign(static_cast<size_t>(program_.values()), -1);
    const int steps = static_cast<int>(program_.steps().size());
    for (int s = 0; s < steps; ++s) {
      const ProgramStep& step = program_.steps()[static_cast<size_t>(s)];
      for (int k = 0; k < step.input_count; ++k)
        last_reader_[static_cast<size_t>(step.inputs[static_cast<size_t>(k)])] = s;
    }
    for (const int value : program_.writes()) last_reader_[static_cast<size_t>(value)] = steps;
  }

  bool is_read(int value) const {
    const auto& steps = program_.steps();
    return std::any_of(steps.begin(), steps.end(), [&](const ProgramStep& step) {
      const auto end = step.inputs.begin() + step.input_count;
      return std::find(step.inputs.begin(), end, value) != end;
    });
  }

  int place_of(int value) const { return places_of_[static_cast<size_t>(value)]; }

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

  void add_conversion(Place from, ScalarType from_type, Place to, ScalarType to_type) {
    note(from_type);
    note(to_type);
    instructions_.push_back({nullptr,
                             converter(from_type, to_type),
                             item_size(from_type),
                             item_size(to_type),
                             {from},
                             to,
                             false});
  }
  void note(ScalarType type) { largest_item_ = std::max(largest_item_, item_size(type)); }

  void add(int s) {
    const ProgramStep& step = program_.steps()[static_cast<size_t>(s)];
    Instruction block{&step, nullptr, 0, 0, {}, 0, false};
    std::vector<Place> passing;
    for (size_t k = 0; k < static_cast<size_t>(step.input_count); ++k) {
      const int value = step.inputs[k];
      const ScalarType type = compute_of(program_.dtype(value));
      block.inputs[k] = place_of(value);
      if (type == step.compute) continue;
      block.inputs[k] = take();
      passing.push_back(block.inputs[k]);
      add_conversion(place_of(value), type, block.inputs[k], step.compute);
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
    const int value = program_.reads() + s;
    const ScalarType type = compute_of(step.dtype);
    const Place own = written_to(value);
    note(step.compute);
    note(step.result);
    const bool is_rounded = type != step.dtype, is_converted = step.result != type;
    const bool same_items = item_size(step.result) == item_size(step.compute);
    block.output = own >= 0 && !is_converted ? own : same_items ? take() : places_++;
    block.is_last = block.output == own && !is_rounded &&
                    std::count(program_.writes().begin(), program_.writes().end(), value) == 1 &&
                    !is_read(value);
    instructions_.push_back(block);
    Place result = block.output;
    if (is_converted) {
      const Place to = own >= 0 ? own : places_++;
      add_conversion(result, step.result, to, type);
      give_back(result);
      result = to;
    }
    if (is_rounded) {
      const Place narrow = places_++;
      add_conversion(result, type, narrow, step.dtype);
      add_conversion(narrow, step.dtype, result, type);
      give_back(narrow);
    }
    places_of_[static_cast<size_t>(value)] = result;
    if (last_reader_[static_cast<size_t>(value)] < 0) give_back(result);  // nobody reads it
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

int Program::read(ScalarType dtype) {
  check_internal(steps_.empty(), "a program reads its operands before its first step");
  dtypes_.push_back(dtype);
  return reads_++;
}

int Program::add(const ProgramStep& step) {
  dtypes_.push_back(step.dtype);
  steps_.push_back(step);
  return values() - 1;
}

void Program::write(int value) { writes_.push_back(value); }

void run_program(const Program& program, ArrayRef<PointwiseOperand> operands, IntList shape) {
  const Plan plan(program, operands);
  const Tiles tiles({plan.operands().data(), plan.operands().size()}, shape);
  const int64_t numel = product(shape);
  const auto count = static_cast<int64_t>(plan.operands().size());
  int64_t largest = plan.largest_item();
  for (const TileOperand& operand : plan.operands())
    largest = std::max(largest, item_size(operand.type));
  const int64_t bytes = (kTile + kTileSlack) * largest / 64 * 64 + 64;
  int64_t written = 0;
  for (const TileOperand& operand : plan.operands())
    if (operand.is_written) written += numel * item_size(operand.type);
  const cpu::NonTemporalStores writes(written);
  parallel_for(numel, kGrain, [&](int64_t begin, int64_t end) {
    const cpu::WorkSpace<uint8_t> room((count + plan.buffers()) * bytes);
    const TileBuffers buffers{reinterpret_cast<char*>(room.data()), bytes, kTile};
    std::vector<void*> places(static_cast<size_t>(count + plan.buffers()));
    for (int64_t k = 0; k < plan.buffers(); ++k)
      places[static_cast<size_t>(count + k)] = buffers.of(static_cast<int>(count + k));
    tiles.run(begin, end, buffers, kTile, [&](void* const* at, int64_t n) {
      std::copy_n(at, count, places.begin());
      plan.run(places.data(), n, buffers, writes.on());
    });
    writes.finish();
  });
}

}  // namespace treadle::simd
