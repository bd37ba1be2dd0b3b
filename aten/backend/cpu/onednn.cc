// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cpu/onednn.h"

#include <sys/mman.h>

#include <new>

namespace treadle::cpu::onednn {

const dnnl::engine& engine() {
  // Never destroyed: a thread may still use it while the program ends.
  static const auto* const e = [] {
    dnnl::set_primitive_cache_capacity(0);  // kernels keep what they make
    return new dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return *e;
}

void require_room_for_code() {
  constexpr size_t kRoom = size_t{32} << 20;
  void* const room =
      mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) throw std::bad_alloc();
  munmap(room, kRoom);
}

}  // namespace treadle::cpu::onednn
