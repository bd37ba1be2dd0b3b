// Memory of small objects. A call makes and frees several objects (a tensor, its storage, a node of
// the graph), and malloc and free take a good part of its time. So a thread keeps the last blocks
// that it freed, by size, for its next objects.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace treadle {

// A block of `size` bytes, aligned to 16. std::bad_alloc where there is no memory.
void* take_small_block(size_t size);
// Takes back a result of take_small_block() for the same size, from any thread.
void give_small_block(void* block, size_t size) noexcept;

// A base of classes whose objects lie in such blocks. Their destructors are virtual or the classes
// final, so that the size is known.
struct InSmallBlock {
  static void* operator new(size_t size) { return take_small_block(size); }
  static void operator delete(void* block, size_t size) noexcept { give_small_block(block, size); }
};

}  // namespace treadle
