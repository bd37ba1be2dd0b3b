// Random numbers by the buffer. The loops are compiled once per target.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/ops/random/cpu/random_blocks.cc"
#include "aten/ops/random/cpu/random_blocks.h"

#include "aten/backend/cpu/foreach_target.h"

#include "aten/scalar/math-inl.h"

// ---- once per target ----
HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

using Bits = Tag<uint32_t>;
using BitsVec = hn::Vec<Bits>;

// High and low halves of the 64-bit products of all lanes with one number.
HWY_INLINE void multiply(BitsVec x, uint32_t by, BitsVec& high, BitsVec& low) {
  const Bits d;
  const hn::Repartition<uint64_t, Bits> wide;
  const BitsVec factor = hn::Set(d, by);
  const auto even = hn::MulEven(x, factor);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, x))), factor);
  high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
  low = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
}

void philox(uint64_t seed, uint64_t first, uint64_t part, int64_t blocks, uint32_t* out) {
  const Bits d;
  constexpr int64_t kLanes = HWY_LANES(uint32_t);
  for (int64_t b = 0; b < blocks; b += kLanes) {
    HWY_ALIGN uint32_t counter[2][kLanes];
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const uint64_t c = first + static_cast<uint64_t>(b + lane);
      counter[0][lane] = static_cast<uint32_t>(c);
      counter[1][lane] = static_cast<uint32_t>(c >> 32);
    }
    BitsVec c0 = hn::Load(d, counter[0]), c1 = hn::Load(d, counter[1]);
    BitsVec c2 = hn::Set(d, static_cast<uint32_t>(part));
    BitsVec c3 = hn::Set(d, static_cast<uint32_t>(part >> 32));
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      BitsVec high0, low0, high1, low1;
      multiply(c0, 0xD2511F53u, high0, low0);
      multiply(c2, 0xCD9E8D57u, high1, low1);
      c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(d, k0));
      c1 = low1;
      c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(d, k1));
      c3 = low0;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    hn::StoreInterleaved4(c0, c1, c2, c3, d, out + 4 * b);
  }
}

// A number in (0, 1), the middle of one of 2^23 or 2^52 intervals, and one in [0, 1).
template <class T>
HWY_INLINE void unit_pair(const uint32_t* bits, T& open, T& closed) {
  if constexpr (sizeof(T) == 4) {
    open = (static_cast<float>(static_cast<int32_t>(bits[0] >> 9)) + 0.5f) * 0x1p-23f;
    closed = static_cast<float>(static_cast<int32_t>(bits[1] >> 8)) * 0x1p-24f;
  } else {
    const uint64_t a = (static_cast<uint64_t>(bits[0]) << 32) | bits[1],
                   b = (static_cast<uint64_t>(bits[2]) << 32) | bits[3];
    open = (static_cast<double>(static_cast<int64_t>(a >> 12)) + 0.5) * 0x1p-52;
    closed = static_cast<double>(static_cast<int64_t>(b >> 11)) * 0x1p-53;
  }
}

template <class T>
void normal(const uint32_t* bits, int64_t count, T* out) {
  constexpr int64_t kPairs = 16, kWords = sizeof(T) == 4 ? 2 : 4;
  const Tag<T> d;
  for (int64_t at = 0; at < count; at += 2 * kPairs) {
    HWY_ALIGN T open[kPairs], closed[kPairs], first[kPairs], second[kPairs];
    for (int64_t k = 0; k < kPairs; ++k)
      unit_pair(bits + (at / 2 + k) * kWords, open[k], closed[k]);
    for (int64_t k = 0; k < kPairs; k += HWY_LANES(T)) {
      const Vec<T> radius = sqrt(set(T(-2)) * log(Vec<T>{hn::Load(d, open + k)}));
      const Vec<T> angle = set(T(2) * std::numbers::pi_v<T>) * Vec<T>{hn::Load(d, closed + k)};
      hn::Store((radius * cos(angle)).raw, d, first + k);
      hn::Store((radius * sin(angle)).raw, d, second + k);
    }
    for (int64_t k = 0; k < kPairs; ++k) {
      out[at + 2 * k] = first[k];
      out[at + 2 * k + 1] = second[k];
    }
  }
}

void normal_float(const uint32_t* bits, int64_t count, float* out) { normal(bits, count, out); }
void normal_double(const uint32_t* bits, int64_t count, double* out) { normal(bits, count, out); }

void uniform_to_normal(const double* first, const double* second, int64_t count, double* out) {
  for (int64_t k = 0; k < count; k += Vec<double>::kLanes) {
    const Vec<double> radius = sqrt(set(-2.0) * log(load(first + k)));
    store(radius * cos(set(2 * std::numbers::pi) * load(second + k)), out + k);
  }
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::simd {

HWY_EXPORT(philox);
HWY_EXPORT(normal_float);
HWY_EXPORT(normal_double);
HWY_EXPORT(uniform_to_normal);

void random_bits(uint64_t seed, uint64_t first, uint64_t part, int64_t blocks, uint32_t* out) {
  const int64_t whole_steps = (blocks + kRandomStep - 1) / kRandomStep * kRandomStep;
  HWY_DYNAMIC_DISPATCH(philox)(seed, first, part, whole_steps, out);
}

void random_normal(const uint32_t* bits, int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(normal_float)(bits, count, out);
}

void random_normal(const uint32_t* bits, int64_t count, double* out) {
  HWY_DYNAMIC_DISPATCH(normal_double)(bits, count, out);
}

void normals_of_uniform(const double* first, const double* second, int64_t count, double* out) {
  const int64_t whole_steps = (count + kRandomStep - 1) / kRandomStep * kRandomStep;
  HWY_DYNAMIC_DISPATCH(uniform_to_normal)(first, second, whole_steps, out);
}

}  // namespace treadle::simd
#endif  // HWY_ONCE
