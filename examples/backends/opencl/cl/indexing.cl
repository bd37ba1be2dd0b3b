R"CLC(
// Elements chosen by index, as bits (S is an unsigned type of their width), and sums at an index in
// values. An index out of range leaves its mark and is not followed. Indices are 64-bit and packed.
inline long checked(long index, long size, int negative, global long* fault) {
  if (index >= (negative ? -size : 0) && index < size) return index < 0 ? index + size : index;
  fault[1] = index;
  fault[0] = 1;
  return -1;
}

// out[o, k, i] = self[o, index[k], i]; an item does lines of `inner` elements.
kernel void select_lines(tr_bytes self_memory, const long self_offset, tr_bytes index_memory,
                         const long index_offset, tr_bytes out_memory, const long out_offset,
                         const long length, const long chosen, const long inner, const int negative,
                         const long lines, global long* fault, const long per) {
  global const T* self = (global const T*)(self_memory + self_offset);
  global const long* index = (global const long*)(index_memory + index_offset);
  global T* out = (global T*)(out_memory + out_offset);
  long at = (long)get_global_id(0) * per;
  const long end = min(at + per, lines);
  for (; at < end; ++at) {
    const long k = checked(index[at % chosen], length, negative, fault);
    if (k < 0) return;
    global const T* from = self + (at / chosen * length + k) * inner;
    for (long i = 0; i < inner; ++i) out[at * inner + i] = from[i];
  }
}

#define MOST 16
typedef struct { long dims, dim, length, shape[MOST], self[MOST], other[MOST]; } walk;

// out[i, j, k] = self[i, index[i, j, k], k]; `shape` is that of index and out, `self` has strides.
kernel void gather(const walk g, tr_bytes self_memory, const long self_offset,
                   tr_bytes index_memory, const long index_offset, tr_bytes out_memory,
                   const long out_offset, const long total, global long* fault, const long per) {
  global const T* self = (global const T*)(self_memory + self_offset);
  global const long* index = (global const long*)(index_memory + index_offset);
  global T* out = (global T*)(out_memory + out_offset);
  long at = (long)get_global_id(0) * per;
  const long end = min(at + per, total);
  for (; at < end; ++at) {
    const long k = checked(index[at], g.length, 1, fault);
    if (k < 0) return;
    long rest = at, place = 0;
    for (long d = g.dims - 1; d >= 0; --d) {
      place += (d == g.dim ? k : rest % g.shape[d]) * g.self[d];
      rest /= g.shape[d];
    }
    out[at] = self[place];
  }
}

// self[i, index[i, j, k], k] += source[i, j, k], in the order of j: an item does the lines along
// `dim` that share a place. `self` are strides of the result, `other` those of the source.
kernel void scatter_add(const walk g, tr_bytes index_memory, const long index_offset,
                        tr_bytes source_memory, const long source_offset, tr_bytes out_memory,
                        const long out_offset, const long lines, global long* fault,
                        const long per) {
  global const long* index = (global const long*)(index_memory + index_offset);
  global const T* source = (global const T*)(source_memory + source_offset);
  global T* out = (global T*)(out_memory + out_offset);
  long along = 1;  // of index, which is packed
  for (long d = g.dims - 1; d > g.dim; --d) along *= g.shape[d];
  long at = (long)get_global_id(0) * per;
  const long end = min(at + per, lines);
  for (; at < end; ++at) {
    long rest = at, from = 0, to = 0, where = 0, step = 1;
    for (long d = g.dims - 1; d >= 0; --d) {
      if (d != g.dim) {
        const long i = rest % g.shape[d];
        rest /= g.shape[d];
        from += i * g.other[d];
        to += i * g.self[d];
        where += i * step;
      }
      step *= g.shape[d];
    }
    for (long j = 0; j < g.shape[g.dim]; ++j) {
      const long k = checked(index[where + j * along], g.length, 1, fault);
      if (k < 0) return;
      global T* place = out + to + k * g.self[g.dim];
      *place = ADD(*place, source[from + j * g.other[g.dim]]);
    }
  }
}

// out[o, index[k], i] += alpha * source[o, k, i], in the order of k; an item does columns (o, i).
kernel void add_lines(tr_bytes index_memory, const long index_offset, tr_bytes source_memory,
                      const long source_offset, tr_bytes out_memory, const long out_offset,
                      const T alpha, const long length, const long chosen, const long inner,
                      const int negative, const long skipped, const long columns,
                      global long* fault, const long per) {
  global const long* index = (global const long*)(index_memory + index_offset);
  const long first = (long)get_global_id(0) * per, end = min(first + per, columns);
  for (long k = 0; k < chosen; ++k) {
    if (index[k] == skipped) continue;
    const long to = checked(index[k], length, negative, fault);
    if (to < 0) return;
    for (long c = first; c < end; ++c) {
      const long o = c / inner, i = c % inner;
      global T* place = (global T*)(out_memory + out_offset) + (o * length + to) * inner + i;
      const T v = ((global const T*)(source_memory + source_offset))[(o * chosen + k) * inner + i];
      *place = ADD(*place, MUL(alpha, v));
    }
  }
}

#ifndef R  // complex numbers have no order
// The place of the largest or smallest element of each line; the first of equal ones, the first NaN
// before all.
kernel void extreme(tr_bytes self_memory, const long self_offset, tr_bytes values_memory,
                    const long values_offset, const int has_values, tr_bytes at_memory,
                    const long at_offset, const long length, const long inner, const int smallest,
                    const long lines, const long per) {
  long at = (long)get_global_id(0) * per;
  const long end = min(at + per, lines);
  for (; at < end; ++at) {
    global const T* x = (global const T*)(self_memory + self_offset) + at / inner * length * inner +
                        at % inner;
    T best = x[0];
    long place = 0;
    for (long i = 1; i < length; ++i) {
      const T v = x[i * inner];
      if ((smallest ? v < best : v > best) || (v != v && best == best)) {
        best = v;
        place = i;
      }
    }
    ((global long*)(at_memory + at_offset))[at] = place;
    if (has_values) ((global T*)(values_memory + values_offset))[at] = best;
  }
}

#endif

// Below or above a diagonal of matrices, zero elsewhere.
kernel void triangle(tr_bytes self_memory, const long self_offset, tr_bytes out_memory,
                     const long out_offset, const long rows, const long columns,
                     const long diagonal, const int upper, const long total, const long per) {
  global const T* self = (global const T*)(self_memory + self_offset);
  global T* out = (global T*)(out_memory + out_offset);
  long at = (long)get_global_id(0) * per;
  const long end = min(at + per, total);
  for (; at < end; ++at) {
    const long j = at % columns, i = at / columns % rows;
    const int kept = upper ? j - i >= diagonal : j - i <= diagonal;
    out[at] = kept ? self[at] : (T)(0);
  }
}
)CLC"
