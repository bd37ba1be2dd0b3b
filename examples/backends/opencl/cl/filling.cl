R"CLC(
// Fills a tensor with numbers in a row, or random ones. S is the stored type, LOAD and
// STORE convert; `out` is contiguous. An item does `per` elements.

// first + i * step; from the middle on counted from the end where there is one.
kernel void sequence(tr_bytes out_memory, const long out_offset, const double2 first,
                     const double2 step, const double2 last, const int has_last, const long total,
                     const long per) {
  global S* out = (global S*)(out_memory + out_offset);
  long at = (long)get_global_id(0) * per;
  const long end = min(at + per, total);
  for (; at < end; ++at) {
    const int from_start = !has_last || at < total / 2 || total == 1;
    const double2 v = from_start ? first + step * (double)at
                                 : last - step * (double)(total - 1 - at);
    STORE_PAIR(out, at, v);
  }
}
kernel void whole_sequence(tr_bytes out_memory, const long out_offset, const long first,
                           const long step, const long total, const long per) {
  global S* out = (global S*)(out_memory + out_offset);
  long at = (long)get_global_id(0) * per;
  const long end = min(at + per, total);
  for (; at < end; ++at) STORE_LONG(out, at, (long)((ulong)first + (ulong)step * (ulong)at));
}

// Philox 4x32-10: four numbers from a key and a counter.
inline uint4 random_block(ulong key, ulong counter) {
  uint4 c = (uint4)((uint)counter, (uint)(counter >> 32), 0, 0);
  uint k0 = (uint)key, k1 = (uint)(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const ulong p0 = (ulong)0xD2511F53u * c.x, p1 = (ulong)0xCD9E8D57u * c.z;
    c = (uint4)((uint)(p1 >> 32) ^ c.y ^ k0, (uint)p1, (uint)(p0 >> 32) ^ c.w ^ k1, (uint)p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}
// Word k of the numbers that start at a counter.
inline uint random_word(ulong key, ulong counter, long k) {
  const uint4 block = random_block(key, counter + (ulong)(k / 4));
  const long part = k % 4;
  return part == 0 ? block.x : part == 1 ? block.y : part == 2 ? block.z : block.w;
}
inline ulong random_pair(ulong key, ulong counter, long k) {
  const uint4 block = random_block(key, counter + (ulong)(k / 2));
  return k % 2 == 0 ? ((ulong)block.x << 32) | block.y : ((ulong)block.z << 32) | block.w;
}

#ifdef UNIT  // floating: UNIT(k) is in [0, 1), OPEN_UNIT(k) in (0, 1)
kernel void uniform_numbers(tr_bytes out_memory, const long out_offset, const ulong key,
                            const ulong counter, const T low, const T high, const long total,
                            const long per) {
  global S* out = (global S*)(out_memory + out_offset);
  long at = (long)get_global_id(0) * per;
  const long end = min(at + per, total);
  for (; at < end; ++at) {
    STORE(out, at, low + (high - low) * UNIT(at));
    // Rounding may have reached the end, which is not part of the range.
    if (!(LOAD(out, at) < high)) STORE(out, at, low);
  }
}
// Box and Muller's pairs.
kernel void normal_numbers(tr_bytes out_memory, const long out_offset, const ulong key,
                           const ulong counter, const T mean, const T deviation, const long total,
                           const long per) {
  global S* out = (global S*)(out_memory + out_offset);
  long at = (long)get_global_id(0) * per;
  const long end = min(at + per, total);
  for (; at < end; ++at) {
    const long pair = at / 2 * 2;
    const T size = sqrt((T)-2 * log(OPEN_UNIT(pair))), turn = UNIT(pair + 1);
    STORE(out, at, mean + deviation * size * (at % 2 == 0 ? cospi(2 * turn) : sinpi(2 * turn)));
  }
}
#endif

// 1 where a word is at most `last`.
kernel void yes_or_no(tr_bytes out_memory, const long out_offset, const ulong key,
                      const ulong counter, const uint last, const long total, const long per) {
  global S* out = (global S*)(out_memory + out_offset);
  long at = (long)get_global_id(0) * per;
  const long end = min(at + per, total);
  for (; at < end; ++at) STORE_LONG(out, at, (long)(random_word(key, counter, at) <= last));
}
// low + a number below `range`; 0 stands for 2^64.
kernel void in_range(tr_bytes out_memory, const long out_offset, const ulong key,
                     const ulong counter, const long low, const ulong range, const long total,
                     const long per) {
  global S* out = (global S*)(out_memory + out_offset);
  long at = (long)get_global_id(0) * per;
  const long end = min(at + per, total);
  for (; at < end; ++at) {
    const ulong bits = random_pair(key, counter, at);
    const ulong chosen = range == 0 ? bits : mul_hi(bits, range);
    STORE_LONG(out, at, (long)((ulong)low + chosen));
  }
}
)CLC"
