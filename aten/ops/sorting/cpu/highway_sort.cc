// Highway has this sort in a library (libhwy_contrib), too. To load that library costs every
// program some milliseconds, in which it measures the processor's clock. So it is compiled here.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cpu/targets.h"

// Highway's headers of the sort count targets by its own macros.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "aten/ops/sorting/cpu/highway_sort.cc"
#include "hwy/foreach_target.h"

#include <chrono>
#include <cstring>

#include "aten/ops/sorting/cpu/highway_sort.h"
#include "hwy/contrib/sort/traits-inl.h"
#include "hwy/contrib/sort/traits128-inl.h"
#include "hwy/contrib/sort/vqsort-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

namespace vqsort = hwy::HWY_NAMESPACE::detail;

template <class Order, class Lane>
void sort_lanes(Lane* lanes, int64_t keys) {
  const vqsort::SharedTraits<Order> traits;
  const size_t count = static_cast<size_t>(keys) * traits.LanesPerKey();
  hwy::HWY_NAMESPACE::Sort(hwy::HWY_NAMESPACE::SortTag<Lane>(), traits, lanes, count,
                           static_cast<Lane*>(nullptr));
}

template <class Key>
void sort_numbers(Key* keys, int64_t count) {
  sort_lanes<vqsort::TraitsLane<vqsort::OrderAscending<Key>>>(keys, count);
}

void sort_16(uint16_t* keys, int64_t count) { sort_numbers(keys, count); }
void sort_32(uint32_t* keys, int64_t count) { sort_numbers(keys, count); }
void sort_64(uint64_t* keys, int64_t count) { sort_numbers(keys, count); }
void sort_128(uint64_t* lanes, int64_t count) {
  sort_lanes<vqsort::Traits128<vqsort::OrderAscending128>>(lanes, count);
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::simd {

HWY_EXPORT(sort_16);
HWY_EXPORT(sort_32);
HWY_EXPORT(sort_64);
HWY_EXPORT(sort_128);

}  // namespace treadle::simd

namespace treadle::cpu {

void highway_sort(uint16_t* keys, int64_t count) {
  using namespace simd;
  HWY_DYNAMIC_DISPATCH(sort_16)(keys, count);
}

void highway_sort(uint32_t* keys, int64_t count) {
  using namespace simd;
  HWY_DYNAMIC_DISPATCH(sort_32)(keys, count);
}

void highway_sort(uint64_t* keys, int64_t count) {
  using namespace simd;
  HWY_DYNAMIC_DISPATCH(sort_64)(keys, count);
}

void highway_sort(WideKey* keys, int64_t count) {
  using namespace simd;
  HWY_DYNAMIC_DISPATCH(sort_128)(&keys->low, count);
}

}  // namespace treadle::cpu

namespace hwy {

// The seed of the random numbers by which the sort takes samples.
void Sorter::Fill24Bytes(const void* heap, size_t count, void* bytes) {
  const uint64_t seed[3] = {
      reinterpret_cast<uintptr_t>(heap), count,
      static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count())};
  std::memcpy(bytes, seed, sizeof(seed));
}

}  // namespace hwy
#endif
