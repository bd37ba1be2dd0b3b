// SPDX-License-Identifier: Apache-2.0

#include "core/base/small_blocks.h"

#include <cstdint>
#include <new>

namespace treadle {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint32_t kMost = 0;  // so that the sanitizer sees each object's life
#else
constexpr uint32_t kMost = 32;
#endif
constexpr size_t kStep = 32, kSizes = 16;  // blocks of 32, 64, ... 512 bytes

struct Block {
  Block* next;
};

// The blocks of one size that the thread keeps.
struct Shelf {
  Block* first = nullptr;
  uint32_t free_places = 0;  // none before open_shelves(), nor when the thread ends
};

struct Shelves {
  Shelf by_size[kSizes];
  enum : uint8_t { kClosed, kOpen, kGone } state = kClosed;
};
thread_local constinit Shelves t_shelves __attribute__((tls_model("initial-exec")));

// Frees what a thread keeps when it ends. Objects that die later are freed at once.
struct ThreadEnd {
  bool open = false;
  ~ThreadEnd() {
    if (!open) return;
    t_shelves.state = Shelves::kGone;
    for (Shelf& shelf : t_shelves.by_size) {
      shelf.free_places = 0;
      while (Block* block = shelf.first) {
        shelf.first = block->next;
        ::operator delete(block);
      }
    }
  }
};
thread_local ThreadEnd t_end;

[[gnu::noinline]] void open_shelves() {
  t_end.open = true;
  t_shelves.state = Shelves::kOpen;
  for (Shelf& shelf : t_shelves.by_size) shelf.free_places = kMost;
}

size_t index_of(size_t size) { return (size - 1) / kStep; }

}  // namespace

void* take_small_block(size_t size) {
  const size_t index = index_of(size);
  if (index >= kSizes || kMost == 0) [[unlikely]]
    return ::operator new(size);
  Shelf& shelf = t_shelves.by_size[index];
  Block* const block = shelf.first;
  if (!block) [[unlikely]]
    return ::operator new((index + 1) * kStep);
  shelf.first = block->next;
  ++shelf.free_places;
  return block;
}

void give_small_block(void* block, size_t size) noexcept {
  const size_t index = index_of(size);
  if (index < kSizes) [[likely]] {
    Shelf& shelf = t_shelves.by_size[index];
    if (shelf.free_places == 0 && t_shelves.state == Shelves::kClosed) [[unlikely]]
      open_shelves();
    if (shelf.free_places > 0) [[likely]] {
      --shelf.free_places;
      shelf.first = new (block) Block{shelf.first};
      return;
    }
  }
  ::operator delete(block);
}

}  // namespace treadle
