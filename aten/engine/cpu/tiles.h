// Tiles: goes over operands of one shape, whatever their strides and dtypes, in pieces whose
// elements lie side by side and are of the types that the loops over them read and write.
//
//   const Tiles tiles(operands, shape);
//   tiles.run(begin, end, buffers, [&](void* const* at, int64_t n) {
//     // at[k]: n elements of operand k
//   });
//
// An operand that lies so in memory is handed out where it is. The others pass through buffers,
// which stay in the nearest cache.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <numeric>

#include "aten/backend/cpu/convert.h"
#include "aten/backend/cpu/convert_vectors.h"
#include "aten/engine/pointwise.h"
#include "core/base/geometry.h"

namespace treadle::simd {

// A tensor of a call, the type of the elements that its loop reads or writes, and which of the two.
struct TileOperand {
  PointwiseOperand memory;
  ScalarType type;
  bool is_written;
};

// Room for the operands that do not lie in memory as a loop reads or writes them.
struct TileBuffers {
  char* first;
  int64_t bytes;  // of each
  int64_t elements;

  char* of(int k) const { return first + k * bytes; }
};

class Tiles {
 public:
  static constexpr int kMaxOperands = 40;

  // Operands that are read come first. Strides belong to `shape`, whose dimensions are merged.
  Tiles(ArrayRef<TileOperand> operands, IntList shape)
      : shape_(shape), row_(shape[shape.size() - 1]), count_(static_cast<int>(operands.size())) {
    for (int k = 0; k < count_; ++k) {
      const Access& a = access_[k] = access(operands[static_cast<size_t>(k)]);
      is_even_ = is_even_ && (a.is_dense || a.is_constant || a.is_periodic || is_repeated(a));
    }
  }

  // body(at, n) for pieces of [begin, end), which count elements of the shape in its order. A piece
  // has no more elements than a buffer, or than `most` where no operand needs a buffer.
  template <class Body>
  void run(int64_t begin, int64_t end, const TileBuffers& buffers, int64_t most,
           const Body& body) const {
    if (begin == end) return;
    Piece piece = begin_pieces(begin, end, buffers, most);
    if (row_ >= (is_even_ ? kLongEvenRow : kLongRow))
      run_rows(begin, end, piece, body);
    else
      run_short_rows(begin, end, piece, whole_rows(buffers), body);
  }
  // The same in pieces of as many elements as a buffer has, but for the last.
  template <class Body>
  void run_whole(int64_t begin, int64_t end, const TileBuffers& buffers, const Body& body) const {
    if (begin == end) return;
    Piece piece = begin_pieces(begin, end, buffers, buffers.elements);
    run_short_rows(begin, end, piece, 0, body);
  }

 private:
  static constexpr int64_t kLongRow = 64;  // rows at least this long are walked one at a time
  // The same where an operand needs no rows, has one for all of them, or one element for each. To
  // fill a buffer with several rows then costs less than a piece for each row.
  static constexpr int64_t kLongEvenRow = 512;
  // Elements of a piece of a longer row where an operand has one for the row: the buffer is filled
  // with it once, and serves all of the row's pieces.
  static constexpr int64_t kRepeated = 512;
  static constexpr int64_t kLine = 16;  // elements, which fill a cache line or more than one

  // How a loop gets at an operand.
  struct Access {
    PointwiseOperand memory;
    ConvertFn* convert;  // into the buffer, or out of it
    int64_t item;        // bytes of an element in the buffer
    int64_t inner;       // stride along a row
    bool is_written;
    bool is_converted;   // the types in memory and in the buffer differ
    bool has_unit_rows;  // a row can be handed out as it is
    bool is_dense;       // so can the whole operand
    bool is_constant;    // one element, seen everywhere
    bool is_periodic;    // one row, seen everywhere
  };

  struct Piece {
    const TileBuffers& buffers;
    int64_t most;
    DimVector index;  // of the first element

    char* buffer(int k) const { return buffers.of(k); }
  };

  Piece begin_pieces(int64_t begin, int64_t end, const TileBuffers& buffers, int64_t most) const {
    Piece piece{buffers, most, DimVector(shape_.size())};
    unravel(shape_, begin, piece.index.data());
    for (int k = 0; k < count_; ++k) {
      const Access& a = access_[k];
      if (a.is_constant)
        a.convert(a.memory.data, 0, piece.buffer(k), a.item,
                  std::min(buffers.elements, end - begin));
    }
    return piece;
  }

  size_t rank() const { return shape_.size(); }
  IntList strides(const Access& a) const { return {a.memory.strides, rank()}; }

  Access access(const TileOperand& operand) const {
    const PointwiseOperand& m = operand.memory;
    Access a{
        m,
        operand.is_written ? converter(operand.type, m.dtype) : converter(m.dtype, operand.type),
        item_size(operand.type),
        m.strides[rank() - 1],
        operand.is_written,
        m.dtype != operand.type,
        false,
        m.dtype == operand.type,
        !operand.is_written,
        !operand.is_written};
    a.has_unit_rows = !a.is_converted && a.inner == a.item;
    int64_t expected = a.item;
    for (size_t d = rank(); d-- > 0; expected *= shape_[d]) {
      a.is_dense = a.is_dense && m.strides[d] == expected;
      a.is_constant = a.is_constant && m.strides[d] == 0;
      a.is_periodic = a.is_periodic && (m.strides[d] == 0) == (d + 1 < rank());
    }
    a.is_periodic = a.is_periodic && rank() > 1;
    return a;
  }

  // Pieces of rows, each as long as the row where no operand needs a buffer.
  template <class Body>
  void run_rows(int64_t begin, int64_t end, Piece& piece, const Body& body) const {
    int64_t limit = piece.most;
    for (int k = 0; k < count_; ++k) {
      const Access& a = access_[k];
      if (!a.has_unit_rows) limit = std::min(limit, piece.buffers.elements);
      if (!a.is_written && a.inner == 0 && !a.is_constant && row_ > 2 * kRepeated)
        limit = std::min(limit, kRepeated);
    }
    int64_t& column = piece.index.back();
    void* at[kMaxOperands];
    for (int64_t from = begin; from < end;) {
      const int64_t n = std::min({end - from, row_ - column, limit});
      for (int k = 0; k < count_; ++k) {
        const Access& a = access_[k];
        at[k] = piece.buffer(k);
        if (a.is_constant) continue;
        // One element for the whole row, which the buffer has from the row's first piece on.
        if (a.inner == 0 && !a.is_written && from != begin && column != 0) continue;
        char* const place = a.memory.data + offset_of(strides(a), piece.index.data());
        if (a.has_unit_rows)
          at[k] = place;
        else if (!a.is_written)
          a.convert(place, a.inner, piece.buffer(k), a.item, n);
      }
      body(at, n);
      for (int k = 0; k < count_; ++k) {
        const Access& a = access_[k];
        if (!a.is_written || a.has_unit_rows) continue;
        a.convert(piece.buffer(k), a.item,
                  a.memory.data + offset_of(strides(a), piece.index.data()), a.inner, n);
      }
      from += n;
      column += n;
      if (column == row_) next_row(shape_, piece.index.data());
    }
  }

  // Elements of the whole rows that a buffer has room for, if they fill whole cache lines, where
  // that is possible; 0 if a row is longer.
  int64_t whole_rows(const TileBuffers& buffers) const {
    for (const int64_t size : {std::lcm(row_, kLine), row_})
      if (size <= buffers.elements) return buffers.elements / size * size;
    return 0;
  }

  // Pieces that span rows. `whole`: elements of those of whole rows, which most are then; or 0.
  template <class Body>
  void run_short_rows(int64_t begin, int64_t end, Piece& piece, int64_t whole,
                      const Body& body) const {
    const int64_t& column = piece.index.back();
    int64_t ready = 0, ready_from = -1;  // elements of periodic operands in buffers, their column
    void* at[kMaxOperands];
    for (int64_t from = begin; from < end;) {
      int64_t n = std::min(end - from, whole > 0 ? whole : piece.buffers.elements);
      // From a row's first element on, unless pieces are whole lines wherever they begin.
      if (whole % kLine != 0 && column > 0) n = std::min(n, row_ - column);
      const bool is_ready = column == ready_from && n <= ready;
      for (int k = 0; k < count_; ++k) {
        const Access& a = access_[k];
        at[k] = piece.buffer(k);
        if (a.is_constant) continue;
        if (a.is_periodic) {
          if (!is_ready) fill_periods(a, column, n, piece.buffer(k));
          continue;
        }
        if (a.is_dense)
          at[k] = a.memory.data + from * a.item;
        else if (a.has_unit_rows && column + n <= row_)
          at[k] = a.memory.data + offset_of(strides(a), piece.index.data());
        else if (!a.is_written)
          gather(a, piece.index.data(), n, piece.buffer(k));
      }
      if (!is_ready) ready = n, ready_from = column;
      body(at, n);
      for (int k = 0; k < count_; ++k) {
        const Access& a = access_[k];
        if (a.is_written && at[k] == piece.buffer(k))
          scatter(a, piece.index.data(), n, piece.buffer(k));
      }
      from += n;
      advance(piece.index, n);
    }
  }
  // The index of the element that comes n elements later.
  void advance(DimVector& index, int64_t n) const {
    for (size_t d = rank(); d-- > 0 && n > 0;) {
      index[d] += n;
      if (index[d] < shape_[d]) return;
      n = index[d] / shape_[d];
      index[d] -= n * shape_[d];
    }
  }

  // n elements of a row that follows itself, from a column on.
  void fill_periods(const Access& a, int64_t column, int64_t n, char* buffer) const {
    int64_t filled = std::min(n, row_ - column);
    a.convert(a.memory.data + column * a.inner, a.inner, buffer, a.item, filled);
    if (filled == n) return;
    const int64_t rest = std::min(n - filled, column);
    a.convert(a.memory.data, a.inner, buffer + filled * a.item, a.item, rest);
    for (filled += rest; filled < n;) {
      const int64_t more = std::min(n - filled, filled);
      std::memcpy(buffer + filled * a.item, buffer, static_cast<size_t>(more * a.item));
      filled += more;
    }
  }
  static bool is_repeated(const Access& a) {
    return a.inner == 0 && !a.is_converted && !a.is_written && (a.item == 4 || a.item == 8);
  }
  void gather(const Access& a, const int64_t* start, int64_t n, char* buffer) const {
    if (is_repeated(a)) return repeat(a, start, n, buffer);
    each_row(a, start, n, [&](int64_t offset, int64_t done, int64_t count) {
      a.convert(a.memory.data + offset, a.inner, buffer + done * a.item, a.item, count);
    });
  }
  // Where all elements of a row are one.
  void repeat(const Access& a, const int64_t* start, int64_t n, char* buffer) const {
    const ConvertVectors& vectors = convert_vectors();
    const auto write = a.item == 4 ? vectors.repeat_4 : vectors.repeat_8;
    DimVector index(start, start + rank());
    const size_t last = rank() - 1;
    const int64_t stride = a.memory.strides[last - 1];
    while (n > 0) {
      const char* const from = a.memory.data + offset_of(strides(a), index.data());
      const int64_t rows = std::min(n / row_, shape_[last - 1] - index[last - 1]);
      int64_t count = row_ * rows;
      if (index[last] != 0 || rows == 0) {
        count = std::min(n, row_ - index[last]);
        write(from, 0, 1, buffer, count);
      } else {
        write(from, stride, rows, buffer, row_);
        index[last - 1] += rows - 1;
      }
      n -= count;
      buffer += count * a.item;
      next_row(shape_, index.data());
    }
  }
  void scatter(const Access& a, const int64_t* start, int64_t n, const char* buffer) const {
    each_row(a, start, n, [&](int64_t offset, int64_t done, int64_t count) {
      a.convert(buffer + done * a.item, a.item, a.memory.data + offset, a.inner, count);
    });
  }
  // f(offset in memory, elements done, elements of the row) for the rows of n elements.
  template <class F>
  void each_row(const Access& a, const int64_t* start, int64_t n, F f) const {
    DimVector index(start, start + rank());
    const size_t last = rank() - 1;
    const IntList steps = strides(a);
    int64_t offset = offset_of(steps, index.data());
    for (int64_t done = 0; done < n;) {
      const int64_t count = std::min(n - done, row_ - index[last]);
      f(offset, done, count);
      done += count;
      // Most rows are a stride behind the one before. The others begin a plane.
      if (last > 0 && index[last - 1] + 1 < shape_[last - 1]) {
        offset += steps[last - 1] - index[last] * steps[last];
        index[last] = 0;
        ++index[last - 1];
      } else {
        next_row(shape_, index.data());
        offset = offset_of(steps, index.data());
      }
    }
  }

  IntList shape_;
  int64_t row_;
  int count_;
  bool is_even_ = true;  // no operand must be walked row by row
  Access access_[kMaxOperands];
};

}  // namespace treadle::simd
