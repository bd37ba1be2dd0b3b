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

#include "aten/backend/cpu/convert.h"
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
  int64_t bytes;  // of each; more than `elements` take, by kTileSlack elements
  int64_t elements;

  char* of(int k) const { return first + k * bytes; }
};
inline constexpr int64_t kTileSlack = 8;

class Tiles {
 public:
  static constexpr int kMaxOperands = 40;

  // Operands that are read come first. Strides belong to `shape`, whose dimensions are merged.
  Tiles(ArrayRef<TileOperand> operands, IntList shape)
      : shape_(shape), row_(shape[shape.size() - 1]), count_(static_cast<int>(operands.size())) {
    for (int k = 0; k < count_; ++k) access_[k] = access(operands[static_cast<size_t>(k)]);
  }

  // body(at, n) for pieces of [begin, end), which count elements of the shape in its order. A piece
  // has no more elements than a buffer, or than `most` where no operand needs a buffer.
  template <class Body>
  void run(int64_t begin, int64_t end, const TileBuffers& buffers, int64_t most,
           const Body& body) const {
    if (begin == end) return;
    Piece piece = begin_pieces(begin, end, buffers, most);
    if (row_ >= kLongRow)
      run_rows(begin, end, piece, body);
    else
      run_short_rows(begin, end, piece, body);
  }
  // The same in pieces of as many elements as a buffer has, but for the last.
  template <class Body>
  void run_whole(int64_t begin, int64_t end, const TileBuffers& buffers, const Body& body) const {
    if (begin == end) return;
    Piece piece = begin_pieces(begin, end, buffers, buffers.elements);
    run_short_rows(begin, end, piece, body);
  }

 private:
  static constexpr int64_t kLongRow = 64;  // rows at least this long are walked one at a time

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
        !operand.is_written};
    a.has_unit_rows = !a.is_converted && a.inner == a.item;
    int64_t expected = a.item;
    for (size_t d = rank(); d-- > 0; expected *= shape_[d]) {
      a.is_dense = a.is_dense && m.strides[d] == expected;
      a.is_constant = a.is_constant && m.strides[d] == 0;
    }
    return a;
  }

  // Pieces of rows, each as long as the row where no operand needs a buffer.
  template <class Body>
  void run_rows(int64_t begin, int64_t end, Piece& piece, const Body& body) const {
    bool is_buffered = false;
    for (int k = 0; k < count_; ++k) is_buffered |= !access_[k].has_unit_rows;
    const int64_t limit = is_buffered ? std::min(piece.buffers.elements, piece.most) : piece.most;
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

  // Pieces that span rows.
  template <class Body>
  void run_short_rows(int64_t begin, int64_t end, Piece& piece, const Body& body) const {
    void* at[kMaxOperands];
    for (int64_t from = begin; from < end;) {
      const int64_t n = std::min(end - from, piece.buffers.elements);
      for (int k = 0; k < count_; ++k) {
        const Access& a = access_[k];
        at[k] = piece.buffer(k);
        if (a.is_constant) continue;
        if (a.is_dense)
          at[k] = a.memory.data + from * a.item;
        else if (a.has_unit_rows && piece.index.back() + n <= row_)
          at[k] = a.memory.data + offset_of(strides(a), piece.index.data());
        else if (!a.is_written)
          gather(a, piece.index.data(), n, piece.buffer(k));
      }
      body(at, n);
      for (int k = 0; k < count_; ++k) {
        const Access& a = access_[k];
        if (a.is_written && at[k] == piece.buffer(k))
          scatter(a, piece.index.data(), n, piece.buffer(k));
      }
      from += n;
      if (from < end) unravel(shape_, from, piece.index.data());
    }
  }

  void gather(const Access& a, const int64_t* start, int64_t n, char* buffer) const {
    if (a.inner == 0 && !a.is_converted) {
      if (a.item == 4) return repeat<uint32_t>(a, start, n, buffer);
      if (a.item == 8) return repeat<uint64_t>(a, start, n, buffer);
    }
    each_row(a, start, n, [&](int64_t offset, int64_t done, int64_t count) {
      a.convert(a.memory.data + offset, a.inner, buffer + done * a.item, a.item, count);
    });
  }
  // Where all elements of a row are one. Whole groups are written: the elements behind a row are
  // those of the next one, and the buffer has slack behind the last.
  template <class Bits>
  void repeat(const Access& a, const int64_t* start, int64_t n, char* buffer) const {
    constexpr int64_t kGroup = kTileSlack;
    each_row(a, start, n, [&](int64_t offset, int64_t done, int64_t count) {
      Bits element, *const to = reinterpret_cast<Bits*>(buffer) + done;
      std::memcpy(&element, a.memory.data + offset, sizeof(Bits));
      for (int64_t k = 0; k < count; k += kGroup) std::fill_n(to + k, kGroup, element);
    });
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
  Access access_[kMaxOperands];
};

}  // namespace treadle::simd
