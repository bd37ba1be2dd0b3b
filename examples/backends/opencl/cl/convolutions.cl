R"CLC(
// Convolutions of one to three dimensions over contiguous tensors: (depth, height, width), the
// dimensions that there are not being of size 1. `in` and `out` belong to the plain convolution;
// a transposed one goes from `out` to `in`.
typedef struct {
  long batch, in_channels, out_channels, groups;
  long in[3], out[3], kernel_size[3], stride[3], padding[3], dilation[3];
} convolution;

// One coordinate of `in` under element k of the kernel at coordinate p of `out`.
inline long under(const convolution c, int d, long p, long k) {
  return p * c.stride[d] - c.padding[d] + k * c.dilation[d];
}
// The coordinate of `out` that has q of `in` under element k of its kernel; -1: none.
inline long over(const convolution c, int d, long q, long k) {
  const long scaled = q + c.padding[d] - k * c.dilation[d];
  if (scaled < 0 || scaled % c.stride[d] != 0) return -1;
  const long p = scaled / c.stride[d];
  return p < c.out[d] ? p : -1;
}
#define INSIDE(c, d, q) ((q) >= 0 && (q) < (c).in[d])

// ---- directly: any dtype and groups; an item does `per` elements ----

kernel void forward(const convolution c, tr_bytes in_memory, const long in_offset,
                    tr_bytes weight_memory, const long weight_offset, tr_bytes bias_memory,
                    const long bias_offset, const int has_bias, tr_bytes out_memory,
                    const long out_offset, const long per) {
  global const T* in = (global const T*)(in_memory + in_offset);
  global const T* weight = (global const T*)(weight_memory + weight_offset);
  global const T* bias = (global const T*)(bias_memory + bias_offset);
  global T* out = (global T*)(out_memory + out_offset);
  const long channels = c.in_channels / c.groups;
  long at = (long)get_global_id(0) * per;
  const long end =
      min(at + per, c.batch * c.out_channels * c.out[0] * c.out[1] * c.out[2]);
  for (; at < end; ++at) {
    long rest = at;
    const long x = rest % c.out[2]; rest /= c.out[2];
    const long y = rest % c.out[1]; rest /= c.out[1];
    const long z = rest % c.out[0]; rest /= c.out[0];
    const long o = rest % c.out_channels, n = rest / c.out_channels;
    const long first = o / (c.out_channels / c.groups) * channels;
    T sum = (T)(0);
    for (long i = 0; i < channels; ++i)
      for (long kz = 0; kz < c.kernel_size[0]; ++kz) {
        const long qz = under(c, 0, z, kz);
        if (!INSIDE(c, 0, qz)) continue;
        for (long ky = 0; ky < c.kernel_size[1]; ++ky) {
          const long qy = under(c, 1, y, ky);
          if (!INSIDE(c, 1, qy)) continue;
          for (long kx = 0; kx < c.kernel_size[2]; ++kx) {
            const long qx = under(c, 2, x, kx);
            if (!INSIDE(c, 2, qx)) continue;
            const T a = in[(((n * c.in_channels + first + i) * c.in[0] + qz) * c.in[1] + qy) *
                               c.in[2] + qx];
            const T b = weight[(((o * channels + i) * c.kernel_size[0] + kz) * c.kernel_size[1] +
                                ky) * c.kernel_size[2] + kx];
            sum = ADD(sum, MUL(a, b));
          }
        }
      }
    out[at] = has_bias ? ADD(sum, bias[o]) : sum;
  }
}

// The transposed convolution: `from` has the shape of out, `to` that of in, the weight is
// (out_channels, in_channels / groups, ...), and the bias one of in_channels.
kernel void transposed(const convolution c, tr_bytes from_memory, const long from_offset,
                       tr_bytes weight_memory, const long weight_offset, tr_bytes bias_memory,
                       const long bias_offset, const int has_bias, tr_bytes to_memory,
                       const long to_offset, const long per) {
  global const T* from = (global const T*)(from_memory + from_offset);
  global const T* weight = (global const T*)(weight_memory + weight_offset);
  global const T* bias = (global const T*)(bias_memory + bias_offset);
  global T* to = (global T*)(to_memory + to_offset);
  const long channels = c.in_channels / c.groups, sources = c.out_channels / c.groups;
  long at = (long)get_global_id(0) * per;
  const long end = min(at + per, c.batch * c.in_channels * c.in[0] * c.in[1] * c.in[2]);
  for (; at < end; ++at) {
    long rest = at;
    const long x = rest % c.in[2]; rest /= c.in[2];
    const long y = rest % c.in[1]; rest /= c.in[1];
    const long z = rest % c.in[0]; rest /= c.in[0];
    const long i = rest % c.in_channels, n = rest / c.in_channels;
    const long first = i / channels * sources;
    T sum = (T)(0);
    for (long s = 0; s < sources; ++s)
      for (long kz = 0; kz < c.kernel_size[0]; ++kz) {
        const long pz = over(c, 0, z, kz);
        if (pz < 0) continue;
        for (long ky = 0; ky < c.kernel_size[1]; ++ky) {
          const long py = over(c, 1, y, ky);
          if (py < 0) continue;
          for (long kx = 0; kx < c.kernel_size[2]; ++kx) {
            const long px = over(c, 2, x, kx);
            if (px < 0) continue;
            const long o = first + s;
            const T a = from[(((n * c.out_channels + o) * c.out[0] + pz) * c.out[1] + py) *
                                 c.out[2] + px];
            const T b = weight[(((o * channels + i % channels) * c.kernel_size[0] + kz) *
                                    c.kernel_size[1] + ky) * c.kernel_size[2] + kx];
            sum = ADD(sum, MUL(a, b));
          }
        }
      }
    to[at] = has_bias ? ADD(sum, bias[i]) : sum;
  }
}

kernel void weight_gradient(const convolution c, tr_bytes grad_memory, const long grad_offset,
                            tr_bytes in_memory, const long in_offset, tr_bytes out_memory,
                            const long out_offset, const long per) {
  global const T* grad = (global const T*)(grad_memory + grad_offset);
  global const T* in = (global const T*)(in_memory + in_offset);
  global T* out = (global T*)(out_memory + out_offset);
  const long channels = c.in_channels / c.groups;
  long at = (long)get_global_id(0) * per;
  const long end = min(at + per, c.out_channels * channels * c.kernel_size[0] * c.kernel_size[1] *
                                     c.kernel_size[2]);
  for (; at < end; ++at) {
    long rest = at;
    const long kx = rest % c.kernel_size[2]; rest /= c.kernel_size[2];
    const long ky = rest % c.kernel_size[1]; rest /= c.kernel_size[1];
    const long kz = rest % c.kernel_size[0]; rest /= c.kernel_size[0];
    const long i = rest % channels, o = rest / channels;
    const long source = o / (c.out_channels / c.groups) * channels + i;
    T sum = (T)(0);
    for (long n = 0; n < c.batch; ++n) {
      T image = (T)(0);  // a sum of sums: the error does not grow with the batch
      for (long z = 0; z < c.out[0]; ++z) {
        const long qz = under(c, 0, z, kz);
        if (!INSIDE(c, 0, qz)) continue;
        for (long y = 0; y < c.out[1]; ++y) {
          const long qy = under(c, 1, y, ky);
          if (!INSIDE(c, 1, qy)) continue;
          for (long x = 0; x < c.out[2]; ++x) {
            const long qx = under(c, 2, x, kx);
            if (!INSIDE(c, 2, qx)) continue;
            const T a = grad[(((n * c.out_channels + o) * c.out[0] + z) * c.out[1] + y) * c.out[2] +
                             x];
            const T b = in[(((n * c.in_channels + source) * c.in[0] + qz) * c.in[1] + qy) *
                               c.in[2] + qx];
            image = ADD(image, MUL(a, b));
          }
        }
      }
      sum = ADD(sum, image);
    }
    out[at] = sum;
  }
}

// ---- by matrix products: the elements under a kernel as a matrix ----

// matrix[(i, k), (n, p)]: the columns follow each other. An item does a row of one image.
kernel void unfold_columns(const convolution c, tr_bytes in_memory, const long in_offset,
                           tr_bytes out_memory, const long out_offset, const long first,
                           const long images) {
  const long elements = c.kernel_size[0] * c.kernel_size[1] * c.kernel_size[2];
  const long positions = c.out[0] * c.out[1] * c.out[2];
  const long at = (long)get_global_id(0);
  if (at >= c.in_channels * elements * images) return;
  const long n = at % images, row = at / images, i = row / elements, k = row % elements;
  const long kx = k % c.kernel_size[2], ky = k / c.kernel_size[2] % c.kernel_size[1];
  const long kz = k / c.kernel_size[2] / c.kernel_size[1];
  global const T* in = (global const T*)(in_memory + in_offset) +
                       ((first + n) * c.in_channels + i) * c.in[0] * c.in[1] * c.in[2];
  global T* out = (global T*)(out_memory + out_offset) + (row * images + n) * positions;
  const long shift = kx * c.dilation[2] - c.padding[2];
  for (long z = 0; z < c.out[0]; ++z)
    for (long y = 0; y < c.out[1]; ++y, out += c.out[2]) {
      const long qz = under(c, 0, z, kz), qy = under(c, 1, y, ky);
      const int inside = INSIDE(c, 0, qz) && INSIDE(c, 1, qy);
      global const T* line = in + (qz * c.in[1] + qy) * c.in[2];
      for (long x = 0; x < c.out[2]; ++x) {
        const long qx = x * c.stride[2] + shift;
        out[x] = inside && INSIDE(c, 2, qx) ? line[qx] : (T)(0);
      }
    }
}

// matrix[(n, p), (i, k)]: the elements under one position follow each other.
kernel void unfold_rows(const convolution c, tr_bytes in_memory, const long in_offset,
                        tr_bytes out_memory, const long out_offset, const long first,
                        const long images) {
  const long elements = c.kernel_size[0] * c.kernel_size[1] * c.kernel_size[2];
  const long positions = c.out[0] * c.out[1] * c.out[2];
  const long at = (long)get_global_id(0);
  if (at >= images * positions) return;
  const long n = at / positions, p = at % positions;
  const long x = p % c.out[2], y = p / c.out[2] % c.out[1], z = p / c.out[2] / c.out[1];
  global const T* in = (global const T*)(in_memory + in_offset) +
                       (first + n) * c.in_channels * c.in[0] * c.in[1] * c.in[2];
  global T* out = (global T*)(out_memory + out_offset) + at * c.in_channels * elements;
  for (long i = 0; i < c.in_channels; ++i)
    for (long kz = 0; kz < c.kernel_size[0]; ++kz)
      for (long ky = 0; ky < c.kernel_size[1]; ++ky) {
        const long qz = under(c, 0, z, kz), qy = under(c, 1, y, ky);
        const int inside = INSIDE(c, 0, qz) && INSIDE(c, 1, qy);
        global const T* line = in + ((i * c.in[0] + qz) * c.in[1] + qy) * c.in[2];
        for (long kx = 0; kx < c.kernel_size[2]; ++kx) {
          const long qx = under(c, 2, x, kx);
          *out++ = inside && INSIDE(c, 2, qx) ? line[qx] : (T)(0);
        }
      }
}

// Adds up matrix[n, (i, k), p] where elements lie over each other. An item does a channel of one
// image, in the order of k.
kernel void fold_columns(const convolution c, tr_bytes matrix_memory, const long matrix_offset,
                         tr_bytes bias_memory, const long bias_offset, const int has_bias,
                         tr_bytes to_memory, const long to_offset, const long first,
                         const long images) {
  const long elements = c.kernel_size[0] * c.kernel_size[1] * c.kernel_size[2];
  const long positions = c.out[0] * c.out[1] * c.out[2], size = c.in[0] * c.in[1] * c.in[2];
  const long at = (long)get_global_id(0);
  if (at >= images * c.in_channels) return;
  const long i = at % c.in_channels;
  global const T* from = (global const T*)(matrix_memory + matrix_offset) +
                         at * elements * positions;
  global T* to = (global T*)(to_memory + to_offset) + (first * c.in_channels + at) * size;
  const T start = has_bias ? ((global const T*)(bias_memory + bias_offset))[i] : (T)(0);
  for (long q = 0; q < size; ++q) to[q] = start;
  for (long kz = 0; kz < c.kernel_size[0]; ++kz)
    for (long ky = 0; ky < c.kernel_size[1]; ++ky)
      for (long kx = 0; kx < c.kernel_size[2]; ++kx)
        for (long z = 0; z < c.out[0]; ++z)
          for (long y = 0; y < c.out[1]; ++y, from += c.out[2]) {
            const long qz = under(c, 0, z, kz), qy = under(c, 1, y, ky);
            if (!INSIDE(c, 0, qz) || !INSIDE(c, 1, qy)) continue;
            global T* line = to + (qz * c.in[1] + qy) * c.in[2];
            const long shift = kx * c.dilation[2] - c.padding[2];
            for (long x = 0; x < c.out[2]; ++x) {
              const long qx = x * c.stride[2] + shift;
              if (INSIDE(c, 2, qx)) line[qx] = ADD(line[qx], from[x]);
            }
          }
}
)CLC"
