// IndexWalk: the elements of the target of an IndexMap, one block of loop elements after another.
//
//   const IndexWalk walk("reindex", map, x.strides());
//   parallel_for(walk.pieces(), grain_for(walk.piece()), [&](int64_t begin, int64_t end) {
//     walk.run(begin, end, [&](const IndexBlock& block) { ... });
//   });
//
// A walk has one of three kinds:
//
//   rows       each index is a sum of one part per loop, and linear in the last loop, which is
//              long. A block is a part of a row. Its elements inside the target are equally spaced.
//   tables     each index is such a sum. A block is a few of the last loops. The offsets of its
//              elements, relative to the first, are in a table. A block of which each element is
//              inside needs no other test.
//   programs   other indices are computed for 256 elements at a time, one operation after another.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "aten/backend/cpu/dim_slices.h"
#include "aten/ops/indexing/cpu/index_program.h"
#include "aten/ops/indexing/index_map.h"

namespace treadle::cpu {

// The target's elements for the loop elements first, first + 1, ..., `count` of them.
struct IndexBlock {
  enum Kind : uint8_t {
    Outside,
    Strided,  // offset, offset + step, ...
    Table,    // offset + table[0], offset + table[1], ...
    Listed,   // table[0], table[1], ..., where kOutside stands for no element
  };
  static constexpr int64_t kOutside = INT64_MIN;
  Kind kind;
  int64_t first, count;
  int64_t offset = 0, step = 0;
  const int64_t* table = nullptr;
};

class IndexWalk {
 public:
  // The map has loops of at least one element in all. `strides` are those of the target.
  IndexWalk(const char* op, const shape::IndexMap& map, IntList strides);
  IndexWalk(const IndexWalk&) = delete;

  // Blocks are in pieces that may be visited in any order, and by several threads.
  int64_t pieces() const { return pieces_; }
  int64_t piece() const { return block_; }  // elements in a piece, at most
  // The number of the first element of a piece, and, for pieces(), of all elements.
  int64_t first_of(int64_t piece) const;

  // Changes the order of the pieces. They become `independent()` groups of equally many,
  // neighbouring pieces. No element of the target belongs to two groups. Within a group, the loop
  // elements of each element of the target keep their order.
  void split_independent();
  int64_t independent() const { return independent_; }

  // use(block) for each block of the pieces [begin, end). ValueError for a division by 0.
  template <class Use>
  void run(int64_t begin, int64_t end, Use&& use) const {
    run_blocks(
        begin, end,
        [](void* context, const IndexBlock& block) {
          (*static_cast<std::remove_reference_t<Use>*>(context))(block);
        },
        const_cast<void*>(static_cast<const void*>(&use)));
  }

 private:
  using UseBlock = void (*)(void* context, const IndexBlock& block);

  // A loop outside of blocks, or the loop of which blocks have `scale` indices each.
  struct Outer {
    int loop;
    int64_t extent, scale;
    int64_t elements;  // the distance of two steps in loop elements
    // What a step adds to the index along each dimension of the target: a factor, and a table or
    // null.
    std::vector<int64_t> factors;
    std::vector<const int64_t*> tables;
  };
  // One dimension of the target.
  struct Dim {
    shape::IndexSum sum;
    int64_t extent, stride;
    std::vector<int64_t> inner;    // what each element of a block adds to the index
    shape::ValueRange full, tail;  // of these, in a block and in the last block of the split loop
  };
  class Position;

  bool make_sums(const shape::IndexMap& map);
  void choose_blocks(bool by_rows);
  void add_inner_values(Dim& dim);
  bool has_table(int loop) const;
  bool is_independent(int loop) const;
  void run_blocks(int64_t begin, int64_t end, UseBlock use, void* context) const;
  void run_sums(int64_t begin, int64_t end, UseBlock use, void* context) const;
  void run_programs(int64_t begin, int64_t end, UseBlock use, void* context) const;
  void visit_row(const int64_t* bases, IndexBlock block, UseBlock use, void* context) const;
  void visit_table(const int64_t* bases, IndexBlock block, UseBlock use, void* context) const;

  enum class Kind : uint8_t { Outside, Rows, Tables, Programs };
  Kind kind_ = Kind::Outside;
  const char* op_;
  DimVector loops_, extents_, strides_;
  int64_t elements_ = 1, block_ = 1, pieces_ = 1, independent_ = 1;

  std::vector<Dim> dims_;
  std::vector<Outer> outer_;
  int split_ = -1;                // the loop that is partly in blocks
  int64_t tail_ = 0;              // elements of the last block of the split loop
  int64_t inner_ = 1;             // elements of the loops after the split one
  std::vector<int64_t> offsets_;  // of the elements of a block
  int64_t step_ = 0;              // their distance
  bool equally_spaced_ = true;

  std::vector<IndexProgram> programs_;
};

}  // namespace treadle::cpu
