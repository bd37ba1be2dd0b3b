// Vector sort: a quicksort whose parts of at most kNetwork keys go through a network of minima and
// maxima, which has no branch to mispredict.
//
// The network works on columns, not rows. A block is kRows vectors, and each lane is a column. The
// keys of a block are in order if its columns, one after another, are. Columns are sorted by minima
// and maxima of whole vectors, then merged in pairs, fours, ... and blocks with blocks. To merge
// two sorted runs, each key of one is compared with its mirror image in the other; then either half
// needs comparisons at half of the distance, and half of that, and so on down to neighbours. All
// comparisons put the greater key after the lesser. So padding of the last run to a power of two
// would never move, and is left out.
//
// Values become keys at the first partition. They become values again part by part, while the
// caches hold them.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/ops/sorting/cpu/vector_sort.cc"
#include "aten/backend/cpu/foreach_target.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "aten/ops/sorting/cpu/sort_key-inl.h"
#include "aten/ops/sorting/cpu/sort_key.h"
#include "aten/ops/sorting/cpu/vector_sort.h"
#include "core/threads/parallel.h"
#include "hwy/highway.h"

#ifndef TREADLE_ATEN_CPU_VECTOR_SORT_TABLE
#define TREADLE_ATEN_CPU_VECTOR_SORT_TABLE
namespace treadle::simd {

// The sorts of one target: of keys of one type, and of values by such keys.
template <class Key>
struct SortLoops {
  void (*keys)(Key* keys, int64_t count);
  void (*values)(const Key* from, Key* to, int64_t rows, int64_t size, Key infinity,
                 bool descending);
};

}  // namespace treadle::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

inline constexpr int kRows = 16;
inline constexpr int64_t kNetwork = 2048;  // keys
inline constexpr int kPairs = 63;
inline constexpr int64_t kForThreads = 1 << 17;  // keys

// Whether several threads sort so many keys. The result is the same.
HWY_INLINE bool shared_by_threads(int64_t count) {
  return count >= kForThreads && num_threads() > 1 && !in_parallel_region();
}

// The comparisons of Batcher's odd-even merge sort of kRows keys.
constexpr std::array<std::pair<int, int>, kPairs> kSortPairs = [] {
  std::array<std::pair<int, int>, kPairs> pairs{};
  int count = 0;
  for (int p = 1; p < kRows; p *= 2) {
    for (int k = p; k >= 1; k /= 2) {
      for (int j = k % p; j + k < kRows; j += 2 * k) {
        for (int i = j; i < std::min(j + k, kRows - k); ++i) {
          if (i / (2 * p) == (i + k) / (2 * p)) pairs[count++] = {i, i + k};
        }
      }
    }
  }
  return pairs;
}();

// Blocks of kRows vectors of kLanes keys.
template <class Key, int kLanes>
struct Block {
  using D = hn::CappedTag<Key, kLanes>;
  using V = hn::Vec<D>;
  using Index = std::conditional_t<sizeof(Key) == 4, int32_t, int64_t>;
  static constexpr int64_t kKeys = int64_t{kRows} * kLanes;

  V v[kRows];

  static HWY_INLINE void order(V& a, V& b) {
    const V least = hn::Min(a, b);
    b = hn::Max(a, b);
    a = least;
  }

  // Lane l of the result is lane l ^ kBits of x.
  template <int kBits>
  static HWY_INLINE V mirrored(V x) {
    HWY_ALIGN static constexpr std::array<Index, kLanes> kPlaces = [] {
      std::array<Index, kLanes> places{};
      for (int lane = 0; lane < kLanes; ++lane) places[lane] = lane ^ kBits;
      return places;
    }();
    return hn::TableLookupLanes(x, hn::SetTableIndices(D(), kPlaces.data()));
  }
  // Lanes that do not have the bit.
  template <int kBit>
  static HWY_INLINE hn::Mask<D> without() {
    const auto lanes = hn::Iota(D(), 0);
    return hn::Eq(hn::And(lanes, hn::Set(D(), Key{kBit})), hn::Zero(D()));
  }

  static HWY_INLINE Block load(const Key* from) {
    Block block;
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) block.v[r] = hn::LoadU(D(), from + r * kLanes);
    return block;
  }
  HWY_INLINE void store(Key* to) const {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) hn::StoreU(v[r], D(), to + r * kLanes);
  }
  // Column after column.
  HWY_INLINE void store_columns(Key* to) const {
    if constexpr (kLanes == 1) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) hn::StoreU(v[r], D(), to + r);
      return;
    }
    // Lanes that differ in a bit are exchanged with rows that do, bit after bit.
    Block rows = *this;
    rows.template exchange<1>();
#pragma GCC unroll 16
    for (int lane = 0; lane < kLanes; ++lane) {
#pragma GCC unroll 16
      for (int r = lane; r < kRows; r += kLanes) {
        hn::StoreU(rows.v[r], D(), to + lane * kRows + (r - lane));
      }
    }
  }
  template <int kBit>
  HWY_INLINE void exchange() {
    if constexpr (kBit < kLanes) {
      const auto low = without<kBit>();
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        if (r & kBit) continue;
        const V a = v[r], b = v[r + kBit];
        v[r] = hn::IfThenElse(low, a, mirrored<kBit>(b));
        v[r + kBit] = hn::IfThenElse(low, mirrored<kBit>(a), b);
      }
      exchange<kBit * 2>();
    }
  }

  template <size_t... kPair>
  HWY_INLINE void sort_columns(std::index_sequence<kPair...>) {
    (order(v[kSortPairs[kPair].first], v[kSortPairs[kPair].second]), ...);
  }
  HWY_INLINE void order_rows() {
#pragma GCC unroll 16
    for (int distance = kRows / 2; distance > 0; distance /= 2) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        if ((r & distance) == 0) order(v[r], v[r + distance]);
      }
    }
  }
  // Orders columns `kBit` apart, and nearer ones.
  template <int kBit>
  HWY_INLINE void order_columns() {
    if constexpr (kBit > 0) {
      const auto low = without<kBit>();
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const V other = mirrored<kBit>(v[r]);
        v[r] = hn::IfThenElse(low, hn::Min(v[r], other), hn::Max(v[r], other));
      }
      order_columns<kBit / 2>();
    }
  }
  // Merges sorted runs of kColumns / 2 columns, then longer ones.
  template <int kColumns>
  HWY_INLINE void merge_columns() {
    if constexpr (kColumns <= kLanes) {
      const auto low = without<kColumns / 2>();
#pragma GCC unroll 16
      for (int r = 0; r < kRows / 2; ++r) {
        V& a = v[r];
        V& b = v[kRows - 1 - r];
        const V image = mirrored<kColumns - 1>(b);
        const V least = hn::Min(a, image), greatest = hn::Max(a, image);
        a = hn::IfThenElse(low, least, greatest);
        b = mirrored<kColumns - 1>(hn::IfThenElse(low, greatest, least));
      }
      order_columns<kColumns / 4>();
      order_rows();
      merge_columns<kColumns * 2>();
    }
  }
  HWY_INLINE void sort() {
    sort_columns(std::make_index_sequence<kPairs>());
    merge_columns<2>();
  }

  // Merges sorted runs of `run` vectors, neighbours of which make one; the last may be shorter.
  static HWY_INLINE void merge_runs(Key* keys, int64_t vectors, int64_t run) {
    const auto at = [keys](int64_t i) HWY_ATTR { return keys + i * kLanes; };
    for (int64_t first = 0; first + run < vectors; first += 2 * run) {
      // Vectors first + run - 1 - i and first + run + i are images of each other.
      const int64_t images = std::min(run, vectors - first - run);
      for (int64_t i = 0; i < images; ++i) {
        Key* const low = at(first + run - 1 - i);
        Key* const high = at(first + run + i);
        const V a = hn::Load(D(), low), b = mirrored<kLanes - 1>(hn::Load(D(), high));
        hn::Store(hn::Min(a, b), D(), low);
        hn::Store(mirrored<kLanes - 1>(hn::Max(a, b)), D(), high);
      }
    }
    for (int64_t distance = run / 2; distance >= kRows; distance /= 2) {
      for (int64_t first = 0; first + distance < vectors; first += 2 * distance) {
        const int64_t last = std::min(first + distance, vectors - distance);
        for (int64_t i = first; i < last; ++i) {
          V a = hn::Load(D(), at(i)), b = hn::Load(D(), at(i + distance));
          order(a, b);
          hn::Store(a, D(), at(i));
          hn::Store(b, D(), at(i + distance));
        }
      }
    }
    for (int64_t first = 0; first < vectors; first += kRows) {
      Block block = load(at(first));
      block.template order_columns<kLanes / 2>();
      block.order_rows();
      block.store(at(first));
    }
  }

  // Sorts at most kNetwork keys; at most kKeys if `kOne`.
  template <bool kOne>
  static HWY_NOINLINE void sort_all(Key* keys, int64_t count) {
    HWY_ALIGN Key work[kOne ? kKeys : kNetwork];
    const int64_t blocks = kOne ? 1 : (count + kKeys - 1) / kKeys;
    const int64_t whole = count / kKeys * kKeys;
    if (whole < count) {
      std::memcpy(work + whole, keys + whole, (count - whole) * sizeof(Key));
      std::fill(work + count, work + blocks * kKeys, std::numeric_limits<Key>::max());
    }
    for (int64_t b = 0; b < blocks; ++b) {
      Block block = load((b * kKeys < whole ? keys : work) + b * kKeys);
      block.sort();
      if constexpr (kOne)
        return put(block, keys, count);
      else
        block.store(work + b * kKeys);
    }
    for (int64_t run = 1; run < blocks; run *= 2) merge_runs(work, blocks * kRows, run * kRows);
    for (int64_t b = 0; b < blocks; ++b)
      put(load(work + b * kKeys), keys + b * kKeys, count - b * kKeys);
  }
  // The first `count` keys of a sorted block, or all of them.
  static HWY_INLINE void put(const Block& block, Key* to, int64_t count) {
    if (count >= kKeys) return block.store_columns(to);
    HWY_ALIGN Key last[kKeys];
    block.store_columns(last);
    std::memcpy(to, last, count * sizeof(Key));
  }
};

struct AsItIs {
  template <class D, class V>
  HWY_INLINE V operator()(D, V v) const {
    return v;
  }
};

template <class Key>
struct Quicksort {
  using D = hn::CappedTag<Key, 64 / sizeof(Key)>;
  using V = hn::Vec<D>;
  static constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
  static constexpr int64_t kStep = 4 * kLanes;  // keys read at once
  static constexpr int kSamples = 64;

  // At most kNetwork keys.
  static void sort_few(Key* keys, int64_t count) {
    constexpr int kSmall = 16 / sizeof(Key);
    if (count <= int64_t{kRows} * kSmall)
      return Block<Key, kSmall>::template sort_all<true>(keys, count);
    if constexpr (kLanes > 2 * kSmall) {
      if (count <= int64_t{kRows} * 2 * kSmall)
        return Block<Key, 2 * kSmall>::template sort_all<true>(keys, count);
    }
    if (count <= int64_t{kRows} * kLanes)
      return Block<Key, kLanes>::template sort_all<true>(keys, count);
    Block<Key, kLanes>::template sort_all<false>(keys, count);
  }

  // Puts the keys of `v` that are less than the pivot at `left`, which goes up, and the others
  // before `right`, which goes down. Writes whole vectors: there is room for one at either.
  static HWY_INLINE void part(V v, V pivot, Key*& left, Key*& right) {
    const auto less = hn::Lt(v, pivot);
    const int64_t count = static_cast<int64_t>(hn::CountTrue(D(), less));
#if HWY_TARGET == HWY_AVX3
    // Highway's Compress is slower: it copies its table where keys have 64 bits.
    const auto in_front = [](V x, auto mask) HWY_ATTR {
      if constexpr (sizeof(Key) == 4)
        return V{_mm512_maskz_compress_epi32(mask.raw, x.raw)};
      else
        return V{_mm512_maskz_compress_epi64(mask.raw, x.raw)};
    };
    hn::StoreU(in_front(v, less), D(), left);
    right -= kLanes - count;
    hn::BlendedStore(in_front(v, hn::Not(less)),
                     hn::FirstN(D(), static_cast<size_t>(kLanes - count)), D(), right);
#else
    // The keys that are not less come after the lesser ones.
    static_assert(hn::CompressIsPartition<Key>::value);
    const V both = hn::Compress(v, less);
    hn::StoreU(both, D(), left);
    hn::StoreU(both, D(), right - kLanes);
    right -= kLanes - count;
#endif
    left += count;
  }

  // Puts keys less than the pivot before the others; returns how many there are. count >= 3 kStep.
  static HWY_NOINLINE int64_t partition(Key* keys, int64_t count, Key pivot_key) {
    const V pivot = hn::Set(D(), pivot_key);
    // Keys of both ends are set aside, which makes room at both.
    const int64_t tail = kStep + count % kStep;
    Key aside[3 * kStep];
    std::memcpy(aside, keys, kStep * sizeof(Key));
    std::memcpy(aside + kStep, keys + count - tail, tail * sizeof(Key));
    Key *left = keys, *right = keys + count;
    const Key *first = keys + kStep, *last = keys + count - tail;
    while (first < last) {
      // Reading where there is less room leaves room for all that was read at either end.
      const Key* from;
      if (first - left <= right - last) {
        from = first;
        first += kStep;
      } else {
        last -= kStep;
        from = last;
      }
      const V a = hn::LoadU(D(), from), b = hn::LoadU(D(), from + kLanes),
              c = hn::LoadU(D(), from + 2 * kLanes), d = hn::LoadU(D(), from + 3 * kLanes);
      part(a, pivot, left, right);
      part(b, pivot, left, right);
      part(c, pivot, left, right);
      part(d, pivot, left, right);
    }
    return part_last(aside, kStep + tail, pivot_key, left, right) - keys;
  }
  // The last keys, which the room from `left` to `right` is for, take a way round: no room is left
  // for whole vectors. Returns the start of the keys that are not less than the pivot.
  static HWY_INLINE Key* part_last(const Key* keys, int64_t count, Key pivot_key, Key* left,
                                   Key* right) {
    Key parted[3 * kStep + 2 * kLanes];
    Key *parted_left = parted, *parted_right = parted + std::size(parted);
    const V pivot = hn::Set(D(), pivot_key);
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
      part(hn::LoadU(D(), keys + i), pivot, parted_left, parted_right);
    for (; i < count; ++i) {
      const bool less = keys[i] < pivot_key;
      *parted_left = keys[i];
      parted_right[-1] = keys[i];
      parted_left += less;
      parted_right -= !less;
    }
    std::memcpy(left, parted, (parted_left - parted) * sizeof(Key));
    left += parted_left - parted;
    std::memcpy(left, parted_right, (right - left) * sizeof(Key));
    return left;
  }

  // The same for keys made of `bits`, which lie elsewhere.
  template <class ToKey>
  static HWY_NOINLINE int64_t partition_into(Key* keys, const Key* bits, int64_t count,
                                             Key pivot_key, ToKey to_key) {
    const V pivot = hn::Set(D(), pivot_key);
    Key *left = keys, *right = keys + count;
    const int64_t tail = kStep + count % kStep;
    for (int64_t i = 0; i < count - tail; i += kStep) {
#pragma GCC unroll 4
      for (int64_t k = 0; k < kStep; k += kLanes)
        part(to_key(D(), hn::LoadU(D(), bits + i + k)), pivot, left, right);
    }
    Key last[2 * kStep];
    map_keys(bits + count - tail, last, tail, to_key);
    return part_last(last, tail, pivot_key, left, right) - keys;
  }

  template <class ToKey>
  static Key median_of_samples(const Key* keys, int64_t count, ToKey to_key) {
    Key samples[kSamples];
    for (int64_t i = 0; i < kSamples; ++i) samples[i] = keys[(2 * i + 1) * count / (2 * kSamples)];
    map_keys(samples, samples, kSamples, to_key);
    sort_few(samples, kSamples);
    return samples[kSamples / 2];
  }

  static int depth_for(int64_t count) { return 2 * std::bit_width(static_cast<uint64_t>(count)); }

  // `depth`: the number of further partitions before a heap sort takes the keys, whose time no
  // order of keys increases. done(keys, count) is called for each part when it is in order.
  template <class Done>
  static void sort(Key* keys, int64_t count, int depth, Done done) {
    while (count > kNetwork) {
      if (depth-- == 0) {
        std::make_heap(keys, keys + count);
        std::sort_heap(keys, keys + count);
        return done(keys, count);
      }
      const Key pivot = median_of_samples(keys, count, AsItIs());
      int64_t less = partition(keys, count, pivot);
      if (less == 0) {
        // The pivot is the least key: all keys equal to it are in their final position.
        if (pivot == std::numeric_limits<Key>::max()) return done(keys, count);
        less = partition(keys, count, pivot + 1);
        done(keys, less);
      } else {
        sort(keys, less, depth, done);
      }
      keys += less;
      count -= less;
    }
    if (count > 1) sort_few(keys, count);
    done(keys, count);
  }

  struct Part {
    Key* keys;
    int64_t count;
  };
  static constexpr int kParts = 8;
  using Parts = std::array<Part, kParts>;

  // Parts each of the first `count` parts again and again until there are kParts, which threads
  // sort on their own. One thread alone would partition them in the same way, but would not look
  // twice at a part whose pivot is its least key.
  template <class Done>
  static void sort_parts(Parts parts, int count, Done done) {
    for (; count < kParts; count *= 2) {
      Parts halves;
      parallel_chunks(count, [&](int64_t i) HWY_ATTR {
        const auto [keys, all] = parts[i];
        const int64_t less =
            all > kNetwork ? partition(keys, all, median_of_samples(keys, all, AsItIs())) : 0;
        halves[2 * i] = {keys, less};
        halves[2 * i + 1] = {keys + less, all - less};
      });
      parts = halves;
    }
    parallel_chunks(count, [&](int64_t i) HWY_ATTR {
      sort(parts[i].keys, parts[i].count, depth_for(parts[i].count), done);
    });
  }
};

template <class Key>
void sort_keys(Key* keys, int64_t count) {
  using Sort = Quicksort<Key>;
  const auto done = [](Key*, int64_t) {};
  if (shared_by_threads(count))
    Sort::sort_parts({{{keys, count}}}, 1, done);
  else
    Sort::sort(keys, count, Sort::depth_for(count), done);
}

// Rows of `size` values, as bits; not more rows than make kNetwork keys, or one.
template <class Key>
void sort_rows(const Key* from, Key* to, int64_t rows, int64_t size, KeyOfBits<Key> to_key,
               BitsOfKey<Key> to_bits) {
  using Sort = Quicksort<Key>;
  if (size <= kNetwork) {
    map_keys(from, to, rows * size, to_key);
    for (int64_t row = 0; size > 1 && row < rows; ++row) Sort::sort_few(to + row * size, size);
    map_keys(to, to, rows * size, to_bits);
    return;
  }
  const auto done = [=](Key* keys, int64_t count)
                        HWY_ATTR { map_keys(keys, keys, count, to_bits); };
  const Key pivot = Sort::median_of_samples(from, size, to_key);
  const int64_t less = Sort::partition_into(to, from, size, pivot, to_key);
  if (shared_by_threads(size))
    return Sort::sort_parts({{{to, less}, {to + less, size - less}}}, 2, done);
  const int depth = Sort::depth_for(size);
  Sort::sort(to, less, depth, done);
  Sort::sort(to + less, size - less, depth, done);
}

template <class Key>
void sort_values(const Key* from, Key* to, int64_t rows, int64_t size, Key infinity,
                 bool descending) {
  const int64_t step = std::max<int64_t>(1, kNetwork / size);
  for (int64_t row = 0; row < rows; row += step) {
    sort_rows(from + row * size, to + row * size, std::min(step, rows - row), size,
              KeyOfBits<Key>{infinity, descending}, BitsOfKey<Key>{descending});
  }
}

template <class Key>
inline constexpr SortLoops<Key> kSortLoops = {&sort_keys<Key>, &sort_values<Key>};
const SortLoops<uint32_t>& sort_loops_32() { return kSortLoops<uint32_t>; }
const SortLoops<uint64_t>& sort_loops_64() { return kSortLoops<uint64_t>; }

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::simd {

HWY_EXPORT(sort_loops_32);
HWY_EXPORT(sort_loops_64);

template <class Key>
static const SortLoops<Key>& sort_loops() {
  if constexpr (sizeof(Key) == 4)
    return HWY_DYNAMIC_DISPATCH(sort_loops_32)();
  else
    return HWY_DYNAMIC_DISPATCH(sort_loops_64)();
}

}  // namespace treadle::simd

namespace treadle::cpu {
namespace {

template <class T>
void sort_by_keys(const T* from, T* to, int64_t rows, int64_t size, bool descending) {
  using Key = KeyType<T>;
  simd::sort_loops<Key>().values(reinterpret_cast<const Key*>(from), reinterpret_cast<Key*>(to),
                                 rows, size, std::bit_cast<Key>(std::numeric_limits<T>::infinity()),
                                 descending);
}

}  // namespace

void vector_sort(uint32_t* keys, int64_t count) { simd::sort_loops<uint32_t>().keys(keys, count); }
void vector_sort(uint64_t* keys, int64_t count) { simd::sort_loops<uint64_t>().keys(keys, count); }
void vector_sort(const float* from, float* to, int64_t rows, int64_t size, bool descending) {
  sort_by_keys(from, to, rows, size, descending);
}
void vector_sort(const double* from, double* to, int64_t rows, int64_t size, bool descending) {
  sort_by_keys(from, to, rows, size, descending);
}

}  // namespace treadle::cpu
#endif  // HWY_ONCE
