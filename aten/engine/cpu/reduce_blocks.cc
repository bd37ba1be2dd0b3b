// Runs reductions over operands of any strides and dtypes. Where the folded dimension is contiguous
// in memory, each output is a fold of consecutive elements. Otherwise rows of outputs are folded
// together. In both cases the elements are cut into pieces of a fixed size, whose results are
// combined in pairs. So bits do not depend on threads, and the error of a sum grows with the
// logarithm of its length.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/cpu/reduce_blocks.h"

#include <cstring>
#include <vector>

#include "aten/backend/cpu/convert.h"
#include "aten/engine/cpu/cascade.h"
#include "core/threads/parallel.h"

namespace treadle::simd {
namespace {

constexpr int64_t kRun = 32;           // elements that are worth a fold of their own
constexpr int64_t kBuffer = 512;       // elements converted at once; divides kPiece
constexpr int64_t kRowsPerPiece = 32;  // rows stepped into one accumulator
constexpr int64_t kWidth = 2048;       // outputs stepped together
constexpr int64_t kLongRow = 1024;     // bytes of a row, from which on the next one is asked for
constexpr int64_t kBandStep = 16;      // elements, of which a band of columns has a multiple
constexpr int64_t kMaxItem = 16;
constexpr int64_t kLanes = 128;            // accumulators that converted elements are stepped into
constexpr int64_t kConverted = 16 * 1024;  // bytes of converted elements that stay at hand

// Walks the index tuples of a shape along one operand.
class Walk {
 public:
  Walk(const DimVector& sizes, const DimVector& strides, int64_t linear)
      : sizes_(sizes),
        strides_(strides),
        index_(unravel(sizes, linear)),
        offset_(offset_of(strides, index_.data())) {}
  int64_t offset() const { return offset_; }
  // Elements left in the innermost row.
  int64_t left() const { return sizes_.back() - index_.back(); }
  // Forward by `n` <= left().
  void advance(int64_t n) {
    size_t d = sizes_.size() - 1;
    index_[d] += n;
    offset_ += n * strides_[d];
    while (index_[d] == sizes_[d] && d > 0) {
      offset_ -= index_[d] * strides_[d];
      index_[d] = 0;
      --d;
      ++index_[d];
      offset_ += strides_[d];
    }
  }

 private:
  const DimVector& sizes_;
  const DimVector& strides_;
  DimVector index_;
  int64_t offset_;
};

class Reduction {
 public:
  Reduction(const ReduceCall& call, const ReduceFunctions& f)
      : call_(call),
        f_(f),
        item_(item_size(call.compute)),
        load_(converter(call.in_dtype, call.compute)),
        store_(converter(call.compute, call.out_dtype)),
        same_type_(call.in_dtype == call.compute),
        of_float_(call.in_dtype == ScalarType::Float32 && f.inner_of_float != nullptr),
        in_item_(item_size(call.in_dtype)),
        inner_(of_float_ ? f.inner_of_float : f.inner),
        outer_(of_float_ ? f.outer_of_float : f.outer),
        width_(same_type_ || is_read_in_place(call.kept_in_strides.back())
                   ? kWidth
                   : std::min(kWidth, kConverted / kRowsAtOnce / item_)) {}

  void run() const {
    if (call_.reduced == 0) return fill_empty();
    const int64_t folded = std::abs(call_.reduced_in_strides.back()),
                  kept = std::abs(call_.kept_in_strides.back());
    // Rows of a few outputs are not worth stepping.
    const bool folds_rows = call_.kept_sizes.back() < 4 || (folded <= kept && call_.reduced > 1);
    if (folds_rows)
      run_inner();
    else
      run_outer();
  }

 private:
  void fill_empty() const {
    parallel_for(call_.outputs, kWidth, [&](int64_t begin, int64_t end) {
      alignas(64) char block[kWidth * kMaxItem];
      f_.init(block, end - begin);
      put(block, begin, end - begin);
    });
  }

  // Finishes accumulators of outputs [first, first + n) and writes them.
  void put(char* acc, int64_t first, int64_t n) const {
    f_.final(acc, n, static_cast<double>(call_.reduced));
    Walk out(call_.kept_sizes, call_.kept_out_strides, first);
    for (int64_t done = 0; done < n;) {
      const int64_t count = std::min(n - done, out.left());
      store_(acc + done * item_, item_, call_.out + out.offset(), call_.kept_out_strides.back(),
             count);
      done += count;
      out.advance(count);
    }
  }

  // Whether the loops read elements at this distance where they lie.
  bool is_read_in_place(int64_t stride) const {
    return (same_type_ || of_float_) && stride == in_item_;
  }

  // ---- each output a fold ----

  // Converts the next n elements.
  void read(const char* base, Walk& in, int64_t n, char* buffer) const {
    for (int64_t done = 0; done < n;) {
      const int64_t count = std::min(n - done, in.left());
      load_(base + in.offset(), call_.reduced_in_strides.back(), buffer + done * item_, item_,
            count);
      done += count;
      in.advance(count);
    }
  }

  // *acc = the fold of the next n elements. They are stepped as rows, whose accumulators do not
  // wait for one another. For types of 8 bytes and more: float's error would grow with n.
  void fold_converted(const char* base, Walk& in, int64_t n, char* acc) const {
    constexpr int64_t kRows = kRowsAtOnce * kLanes;
    alignas(64) char lanes[kLanes * kMaxItem], buffer[kRows * kMaxItem];
    f_.init(lanes, kLanes);
    for (; n >= kRows; n -= kRows) {
      read(base, in, kRows, buffer);
      f_.outer(lanes, buffer, kLanes, kRowsAtOnce, kLanes * item_, nullptr);
    }
    read(base, in, n, buffer);
    for (int64_t done = 0; done < n; done += kLanes)
      f_.outer(lanes, buffer + done * item_, std::min(kLanes, n - done), 1, 0, nullptr);
    f_.inner(acc, lanes, kLanes, 1, 0);
  }

  // *acc = the fold of elements [begin, end) of the output whose first element is at `base`.
  void fold(const char* base, int64_t begin, int64_t end, char* acc) const {
    const bool direct = is_read_in_place(call_.reduced_in_strides.back());
    if (direct && call_.reduced_sizes.size() == 1 && end - begin <= kPiece) {
      inner_(acc, base + begin * in_item_, end - begin, 1, 0);
      return;
    }
    Walk in(call_.reduced_sizes, call_.reduced_in_strides, begin);
    if (!direct && !same_type_ && item_ >= 8 && f_.init != nullptr &&
        end - begin >= kRowsAtOnce * kLanes)
      return fold_converted(base, in, end - begin, acc);
    alignas(64) char buffer[kPiece * kMaxItem];
    if (!direct && !same_type_ && call_.reduced_sizes.size() == 1 && end - begin <= kPiece) {
      read(base, in, end - begin, buffer);
      return f_.inner(acc, buffer, end - begin, 1, 0);
    }
    Cascade cascade(f_, 1, item_);
    bool many = false;
    const int64_t run = call_.reduced_sizes.back();
    const bool folds_runs =
        direct && call_.reduced_sizes.size() == 2 && run >= kRun && run <= kPiece;
    for (int64_t at = begin; at < end;) {
      const int64_t n = std::min(kPiece, end - at);
      if (folds_runs) {
        at += fold_runs(base, in, end - at, acc);
        if (!many && at == end) return;
        many = true;
        cascade.push(acc);
        continue;
      }
      if (direct && in.left() >= n) {
        inner_(acc, base + in.offset(), n, 1, 0);
        in.advance(n);
      } else {
        read(base, in, n, buffer);
        f_.inner(acc, buffer, n, 1, 0);
      }
      at += n;
      if (!many && at == end) return;
      many = true;
      cascade.push(acc);
    }
    std::memcpy(acc, cascade.finish(), static_cast<size_t>(item_));
  }

  // *acc = the fold of elements that lie in runs, of as many runs as make about a piece, or of what
  // is left of one; at most n. Returns how many elements.
  int64_t fold_runs(const char* base, Walk& in, int64_t n, char* acc) const {
    const int64_t run = call_.reduced_sizes.back(), left = std::min(n, in.left());
    if (left < run) {
      inner_(acc, base + in.offset(), left, 1, 0);
      in.advance(left);
      return left;
    }
    alignas(64) char parts[kPiece / kRun * kMaxItem];
    const int64_t runs = std::min(n, kPiece) / run;
    inner_(parts, base + in.offset(), run, runs, call_.reduced_in_strides[0]);
    f_.inner(acc, parts, runs, 1, 0);
    for (int64_t r = 0; r < runs; ++r) in.advance(run);
    return runs * run;
  }

  // acc[0..n) = the folds of the next n outputs, each of consecutive elements of one piece.
  void fold_short_rows(Walk& in, int64_t n, char* acc) const {
    for (int64_t done = 0; done < n;) {
      const int64_t rows = std::min(n - done, in.left());
      inner_(acc + done * item_, call_.in + in.offset(), call_.reduced, rows,
             call_.kept_in_strides.back());
      done += rows;
      in.advance(rows);
    }
  }

  // The same of rows that are converted first, many at once.
  void fold_converted_rows(Walk& in, int64_t n, char* acc) const {
    alignas(64) char buffer[kConverted];
    const int64_t length = call_.reduced, distance = length * item_;
    const int64_t stride = call_.reduced_in_strides.back(), step = call_.kept_in_strides.back();
    for (int64_t done = 0; done < n;) {
      const int64_t rows = std::min({n - done, in.left(), kConverted / distance});
      const char* const first = call_.in + in.offset();
      if (step == length * stride) {
        load_(first, stride, buffer, item_, rows * length);
      } else {
        for (int64_t r = 0; r < rows; ++r)
          load_(first + r * step, stride, buffer + r * distance, item_, length);
      }
      f_.inner(acc + done * item_, buffer, length, rows, distance);
      done += rows;
      in.advance(rows);
    }
  }

  void run_inner() const {
    const int64_t chunks = (call_.reduced + kChunk - 1) / kChunk;
    if (chunks == 1) {
      const bool in_place = is_read_in_place(call_.reduced_in_strides.back());
      const bool short_rows =
          call_.reduced_sizes.size() == 1 &&
          (in_place ? call_.reduced <= kPiece : call_.reduced < kRowsAtOnce * kLanes);
      parallel_for(call_.outputs, std::max<int64_t>(1, kChunk / 2 / call_.reduced),
                   [&](int64_t begin, int64_t end) {
                     alignas(64) char acc[kBuffer * kMaxItem];
                     Walk in(call_.kept_sizes, call_.kept_in_strides, begin);
                     for (int64_t first = begin; first < end; first += kBuffer) {
                       const int64_t n = std::min(kBuffer, end - first);
                       if (short_rows && in_place)
                         fold_short_rows(in, n, acc);
                       else if (short_rows)
                         fold_converted_rows(in, n, acc);
                       for (int64_t i = 0; i < n && !short_rows; ++i) {
                         fold(call_.in + in.offset(), 0, call_.reduced, acc + i * item_);
                         in.advance(1);
                       }
                       put(acc, first, n);
                     }
                   });
      return;
    }
    std::vector<char> partial(static_cast<size_t>(call_.outputs * chunks * item_));
    parallel_chunks(call_.outputs * chunks, [&](int64_t unit) {
      const int64_t begin = unit % chunks * kChunk;
      const Walk in(call_.kept_sizes, call_.kept_in_strides, unit / chunks);
      alignas(64) char acc[kMaxItem];
      fold(call_.in + in.offset(), begin, std::min(call_.reduced, begin + kChunk), acc);
      std::memcpy(partial.data() + unit * item_, acc, static_cast<size_t>(item_));
    });
    for (int64_t o = 0; o < call_.outputs; ++o)
      combine_partials(partial.data() + o * chunks * item_, chunks, item_, 1, o);
  }

  // ---- rows of outputs stepped together ----

  // Steps `rows` rows, which lie in memory as they are, into acc[0..width). Long rows are streams
  // too short for the machine to see them coming: while bands of columns are stepped, the rows
  // behind them are asked for, one after the other as they lie in memory, up to `ahead` of them.
  void step_in_place(const char* row, int64_t rows, int64_t ahead, int64_t width, char* acc) const {
    const int64_t distance = call_.reduced_in_strides.back();
    if (width * in_item_ < kLongRow) return outer_(acc, row, width, rows, distance, nullptr);
    // Bands are whole vectors, except the last one.
    const int64_t band = width / kRowsAtOnce / kBandStep * kBandStep;
    for (; rows >= kRowsAtOnce; rows -= kRowsAtOnce, ahead -= kRowsAtOnce) {
      const char* const next = ahead >= 2 * kRowsAtOnce ? row + kRowsAtOnce * distance : nullptr;
      for (int64_t b = 0; b < kRowsAtOnce; ++b) {
        const int64_t first = b * band, count = b + 1 < kRowsAtOnce ? band : width - first;
        outer_(acc + first * item_, row + first * in_item_, count, kRowsAtOnce, distance,
               next ? next + b * distance : nullptr);
      }
      row += kRowsAtOnce * distance;
    }
    if (rows > 0) outer_(acc, row, width, rows, distance, nullptr);
  }

  // The same of rows that are converted first.
  void step_converted(const char* row, int64_t rows, int64_t width, char* acc) const {
    // `width` is cut so that several rows fit only where elements change their type.
    const int64_t at_once = same_type_ ? 1 : kRowsAtOnce;
    alignas(64) char buffer[kWidth * kMaxItem];
    for (int64_t done = 0; done < rows; done += at_once) {
      const int64_t count = std::min(at_once, rows - done);
      for (int64_t r = 0; r < count; ++r, row += call_.reduced_in_strides.back())
        load_(row, call_.kept_in_strides.back(), buffer + r * width * item_, item_, width);
      f_.outer(acc, buffer, width, count, width * item_, nullptr);
    }
  }

  // acc[0..width) = the fold of rows [begin, end) of the outputs whose first elements start at
  // `base`.
  void step_rows(const char* base, int64_t width, int64_t begin, int64_t end, char* acc) const {
    const int64_t stride = call_.kept_in_strides.back();
    const bool direct = is_read_in_place(stride);
    Cascade cascade(f_, width, item_);
    Walk in(call_.reduced_sizes, call_.reduced_in_strides, begin);
    bool many = false;
    for (int64_t at = begin; at < end;) {
      const int64_t last = std::min(end, at + kRowsPerPiece);
      if (f_.init != nullptr) {
        f_.init(acc, width);
      } else {
        load_(base + in.offset(), stride, acc, item_, width);
        in.advance(1);
        ++at;
      }
      while (at < last) {
        const int64_t rows = std::min(last - at, in.left());
        if (direct)
          step_in_place(base + in.offset(), rows, in.left(), width, acc);
        else
          step_converted(base + in.offset(), rows, width, acc);
        in.advance(rows);
        at += rows;
      }
      if (!many && at == end) return;
      many = true;
      cascade.push(acc);
    }
    std::memcpy(acc, cascade.finish(), static_cast<size_t>(width * item_));
  }

  // The same where rows are short and lie side by side: some of them are a long row, whose
  // accumulators are folded by halves.
  void step_short_rows(const char* base, int64_t width, int64_t begin, int64_t end,
                       char* acc) const {
    const int64_t joined = short_rows_of(width), rows = (end - begin) / joined;
    if (rows < kRowsPerPiece) return step_rows(base, width, begin, end, acc);
    const char* const first = base + begin * width * in_item_;
    ReduceCall wide = call_;
    wide.reduced_sizes = {rows};
    wide.reduced_in_strides = {joined * width * in_item_};
    alignas(64) char sums[kWidth * kMaxItem];
    Reduction(wide, f_).step_rows(first, joined * width, 0, rows, sums);
    const int64_t rest = (end - begin) % joined;
    if (rest > 0) {
      outer_(sums, first + rows * wide.reduced_in_strides[0], rest * width, 1, 0, nullptr);
    }
    for (int64_t half = joined / 2; half > 0; half /= 2)
      f_.combine(sums, sums + half * width * item_, half * width);
    std::memcpy(acc, sums, static_cast<size_t>(width * item_));
  }
  // How many short rows are stepped as one: a power of two.
  static int64_t short_rows_of(int64_t width) {
    int64_t rows = 1;
    while (rows * 2 * width <= kLanes) rows *= 2;
    return rows;
  }

  void run_outer() const {
    // A unit is up to width_ outputs of one row of the kept dimensions; long folds are cut into
    // chunks of rows.
    const int64_t row = call_.kept_sizes.back(), rows = call_.outputs / row;
    const int64_t blocks = (row + width_ - 1) / width_, units = rows * blocks;
    const int64_t width = std::min(row, width_);
    const int64_t chunk_rows =
        std::max<int64_t>(kRowsPerPiece, kChunk / width / kRowsPerPiece * kRowsPerPiece);
    const int64_t chunks = (call_.reduced + chunk_rows - 1) / chunk_rows;
    const bool short_rows = width <= kLanes / 4 && is_read_in_place(call_.kept_in_strides.back()) &&
                            call_.reduced_sizes.size() == 1 &&
                            call_.reduced_in_strides[0] == width * in_item_;
    const auto step = short_rows ? &Reduction::step_short_rows : &Reduction::step_rows;
    const auto place = [&](int64_t unit, int64_t* first, int64_t* n) {
      const int64_t at = unit % blocks * width_;
      *first = unit / blocks * row + at;
      *n = std::min(width_, row - at);
    };
    if (chunks == 1) {
      parallel_for(units, std::max<int64_t>(1, kChunk / 2 / (width * call_.reduced)),
                   [&](int64_t begin, int64_t end) {
                     alignas(64) char acc[kWidth * kMaxItem];
                     for (int64_t unit = begin; unit < end; ++unit) {
                       int64_t first, n;
                       place(unit, &first, &n);
                       (this->*step)(
                           call_.in + Walk(call_.kept_sizes, call_.kept_in_strides, first).offset(),
                           n, 0, call_.reduced, acc);
                       put(acc, first, n);
                     }
                   });
      return;
    }
    const int64_t bytes = width * item_;
    std::vector<char> partial(static_cast<size_t>(units * chunks * bytes));
    parallel_chunks(units * chunks, [&](int64_t piece) {
      int64_t first, n;
      place(piece / chunks, &first, &n);
      const int64_t begin = piece % chunks * chunk_rows;
      (this->*step)(call_.in + Walk(call_.kept_sizes, call_.kept_in_strides, first).offset(), n,
                    begin, std::min(call_.reduced, begin + chunk_rows),
                    partial.data() + piece * bytes);
    });
    for (int64_t unit = 0; unit < units; ++unit) {
      int64_t first, n;
      place(unit, &first, &n);
      combine_partials(partial.data() + unit * chunks * bytes, chunks, bytes, n, first);
    }
  }

  // Partial results, `spacing` bytes apart, of outputs [first, first + n): combined in the order of
  // chunks, finished and written.
  void combine_partials(const char* partial, int64_t chunks, int64_t spacing, int64_t n,
                        int64_t first) const {
    Cascade cascade(f_, n, item_);
    for (int64_t c = 0; c < chunks; ++c) cascade.push(partial + c * spacing);
    std::vector<char> acc(static_cast<size_t>(n * item_));
    std::memcpy(acc.data(), cascade.finish(), acc.size());
    put(acc.data(), first, n);
  }

  const ReduceCall& call_;
  const ReduceFunctions& f_;
  int64_t item_;
  ConvertFn* load_;
  ConvertFn* store_;
  bool same_type_;
  bool of_float_;  // elements of float, which the loops convert
  int64_t in_item_;
  decltype(ReduceFunctions::inner) inner_;  // of elements as they lie in memory
  decltype(ReduceFunctions::outer) outer_;
  int64_t width_;  // kWidth, or less where elements are converted first
};

}  // namespace

namespace {

// Null where the reduction has none for the dtype.
const ReduceFunctions* functions_for(ScalarType compute, const ReduceBlocks& blocks) {
  const ReduceFunctions& found = blocks.by_dtype[static_cast<size_t>(compute)];
  return found.inner != nullptr ? &found : nullptr;
}

ScalarType wider(ScalarType t) {
  return t == ScalarType::Float32     ? ScalarType::Float64
         : t == ScalarType::Complex64 ? ScalarType::Complex128
                                      : t;
}

}  // namespace

void run_reduce(const ReduceCall& call, const ReduceBlocks& blocks) {
  if (blocks.widens && wider(call.compute) != call.compute) {
    ReduceCall wide = call;
    wide.compute = wider(call.compute);
    if (const ReduceFunctions* f = functions_for(wide.compute, blocks))
      return Reduction(wide, *f).run();
  }
  const ReduceFunctions* const f = functions_for(call.compute, blocks);
  check_internal(f != nullptr, "a reduction kernel was called for a dtype it has no loop for");
  Reduction(call, *f).run();
}

}  // namespace treadle::simd
