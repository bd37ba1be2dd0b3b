R"CLC(
// Pooling over (depth, height, width) of contiguous planes. A window is begin, begin + step, ...
// below end; `extent` is its size with the padding that belongs to it.
typedef struct {
  long in[3], out[3], size[3], stride[3], padding[3], dilation[3];
  long adaptive, count_padding, divisor;  // divisor 0: what the window has
} pooling;
typedef struct { long begin, end, step, extent; } span;

inline span window(const pooling g, int d, long i) {
  if (g.adaptive) {
    const long begin = i * g.in[d] / g.out[d];
    const long end = ((i + 1) * g.in[d] + g.out[d] - 1) / g.out[d];
    return (span){begin, end, 1, end - begin};
  }
  const long step = g.dilation[d], start = i * g.stride[d] - g.padding[d];
  const long behind = start + (g.size[d] - 1) * step + 1;
  const long begin = start >= 0 ? start : start + (-start + step - 1) / step * step;
  return (span){begin, max(begin, min(behind, g.in[d])), step,
                min(behind, g.in[d] + g.padding[d]) - start};
}
#define IN_SIZE(g) ((g).in[0] * (g).in[1] * (g).in[2])
#define OUT_SIZE(g) ((g).out[0] * (g).out[1] * (g).out[2])

// The first of the largest values in the order of the plane, the last NaN where there is one.
kernel void largest(const pooling g, tr_bytes in_memory, const long in_offset, tr_bytes out_memory,
                    const long out_offset, tr_bytes at_memory, const long at_offset,
                    const long total, const long per) {
  global T* out = (global T*)(out_memory + out_offset);
  global long* places = (global long*)(at_memory + at_offset);
  long at = (long)get_global_id(0) * per;
  const long end = min(at + per, total);
  for (; at < end; ++at) {
    const long x = at % g.out[2], y = at / g.out[2] % g.out[1];
    const long z = at / g.out[2] / g.out[1] % g.out[0], plane = at / OUT_SIZE(g);
    global const T* in = (global const T*)(in_memory + in_offset) + plane * IN_SIZE(g);
    const span sz = window(g, 0, z), sy = window(g, 1, y), sx = window(g, 2, x);
    long best = (sz.begin * g.in[1] + sy.begin) * g.in[2] + sx.begin;
    T top = in[best];
    for (long i = sz.begin; i < sz.end; i += sz.step)
      for (long j = sy.begin; j < sy.end; j += sy.step)
        for (long k = sx.begin; k < sx.end; k += sx.step) {
          const long place = (i * g.in[1] + j) * g.in[2] + k;
          const T v = in[place];
          if (v > top || v != v) {
            top = v;
            best = place;
          }
        }
    out[at] = top;
    places[at] = best;
  }
}

// to[plane, places] += grad; an item does a plane.
kernel void spread(tr_bytes grad_memory, const long grad_offset, tr_bytes at_memory,
                   const long at_offset, tr_bytes to_memory, const long to_offset, const long size,
                   const long large, const long planes, global long* fault) {
  const long plane = (long)get_global_id(0);
  if (plane >= planes) return;
  global const T* grad = (global const T*)(grad_memory + grad_offset) + plane * size;
  global const long* places = (global const long*)(at_memory + at_offset) + plane * size;
  global T* to = (global T*)(to_memory + to_offset) + plane * large;
  for (long i = 0; i < large; ++i) to[i] = 0;
  for (long i = 0; i < size; ++i) {
    const long place = places[i];
    if (place < 0 || place >= large) {
      fault[1] = place;
      fault[0] = 1;
      return;
    }
    to[place] = ADD(to[place], grad[i]);
  }
}

inline T divisor(const pooling g, span z, span y, span x) {
  if (g.divisor != 0) return (T)g.divisor;
  const double size = g.count_padding
                          ? (double)z.extent * (double)y.extent * (double)x.extent
                          : (double)(z.end - z.begin) * (double)(y.end - y.begin) *
                                (double)(x.end - x.begin);
  return (T)max(1.0, size);
}
kernel void average(const pooling g, tr_bytes in_memory, const long in_offset, tr_bytes out_memory,
                    const long out_offset, const long total, const long per) {
  global T* out = (global T*)(out_memory + out_offset);
  long at = (long)get_global_id(0) * per;
  const long end = min(at + per, total);
  for (; at < end; ++at) {
    const long x = at % g.out[2], y = at / g.out[2] % g.out[1];
    const long z = at / g.out[2] / g.out[1] % g.out[0], plane = at / OUT_SIZE(g);
    global const T* in = (global const T*)(in_memory + in_offset) + plane * IN_SIZE(g);
    const span sz = window(g, 0, z), sy = window(g, 1, y), sx = window(g, 2, x);
    T sum = 0;
    for (long i = sz.begin; i < sz.end; ++i)
      for (long j = sy.begin; j < sy.end; ++j) {
        T row = 0;
        for (long k = sx.begin; k < sx.end; ++k) row += in[(i * g.in[1] + j) * g.in[2] + k];
        sum += row;
      }
    out[at] = sum / divisor(g, sz, sy, sx);
  }
}
// An item does a plane.
kernel void average_gradient(const pooling g, tr_bytes grad_memory, const long grad_offset,
                             tr_bytes to_memory, const long to_offset, const long planes) {
  const long plane = (long)get_global_id(0);
  if (plane >= planes) return;
  global const T* grad = (global const T*)(grad_memory + grad_offset) + plane * OUT_SIZE(g);
  global T* to = (global T*)(to_memory + to_offset) + plane * IN_SIZE(g);
  for (long i = 0; i < IN_SIZE(g); ++i) to[i] = 0;
  for (long z = 0; z < g.out[0]; ++z)
    for (long y = 0; y < g.out[1]; ++y)
      for (long x = 0; x < g.out[2]; ++x) {
        const span sz = window(g, 0, z), sy = window(g, 1, y), sx = window(g, 2, x);
        const T share = *grad++ / divisor(g, sz, sy, sx);
        for (long i = sz.begin; i < sz.end; ++i)
          for (long j = sy.begin; j < sy.end; ++j)
            for (long k = sx.begin; k < sx.end; ++k) to[(i * g.in[1] + j) * g.in[2] + k] += share;
      }
}
)CLC"
