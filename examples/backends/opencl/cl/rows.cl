R"CLC(
// Softmax, normalisation and negative log likelihood: an item does a row (a line of elements, a
// channel), with sums of sums, so that the error of long ones does not grow with their length.
#define FOLDED(result, count, term)                          \
  {                                                          \
    T total = 0;                                             \
    for (long start = 0; start < (count); start += 256) {    \
      const long stop = min(start + 256, (long)(count));     \
      T part = 0;                                            \
      for (long i = start; i < stop; ++i) part += (term);    \
      total += part;                                         \
    }                                                        \
    result = total;                                          \
  }

// ---- softmax over lines of `length` elements that are `inner` apart ----

kernel void softmax(tr_bytes in_memory, const long in_offset, tr_bytes out_memory,
                    const long out_offset, const long length, const long inner, const int logarithm,
                    const long lines) {
  const long at = (long)get_global_id(0);
  if (at >= lines) return;
  const long first = at / inner * length * inner + at % inner;
  global const T* x = (global const T*)(in_memory + in_offset) + first;
  global T* y = (global T*)(out_memory + out_offset) + first;
  T top = x[0];
  for (long i = 1; i < length; ++i) top = FN(maximum)(top, x[i * inner]);
  T sum;
  FOLDED(sum, length, exp(x[i * inner] - top));
  if (logarithm) {
    const T rest = log(sum);
    for (long i = 0; i < length; ++i) y[i * inner] = x[i * inner] - top - rest;
  } else {
    for (long i = 0; i < length; ++i) y[i * inner] = exp(x[i * inner] - top) / sum;
  }
}
kernel void softmax_gradient(tr_bytes grad_memory, const long grad_offset, tr_bytes y_memory,
                             const long y_offset, tr_bytes out_memory, const long out_offset,
                             const long length, const long inner, const int logarithm,
                             const long lines) {
  const long at = (long)get_global_id(0);
  if (at >= lines) return;
  const long first = at / inner * length * inner + at % inner;
  global const T* g = (global const T*)(grad_memory + grad_offset) + first;
  global const T* y = (global const T*)(y_memory + y_offset) + first;
  global T* out = (global T*)(out_memory + out_offset) + first;
  T sum;
  if (logarithm) {
    FOLDED(sum, length, g[i * inner]);
    for (long i = 0; i < length; ++i) out[i * inner] = g[i * inner] - exp(y[i * inner]) * sum;
  } else {
    FOLDED(sum, length, g[i * inner] * y[i * inner]);
    for (long i = 0; i < length; ++i) out[i * inner] = y[i * inner] * (g[i * inner] - sum);
  }
}

// ---- batch normalisation: (batch, channels, plane) ----

#define CHANNEL(k) (((k) * channels + c) * plane)
#define OVER_CHANNEL(result, term)                         \
  {                                                        \
    T all = 0;                                             \
    for (long k = 0; k < batch; ++k) {                     \
      const long base = CHANNEL(k);                        \
      T image;                                             \
      FOLDED(image, plane, term);                          \
      all += image;                                        \
    }                                                      \
    result = all;                                          \
  }
kernel void batch_norm(tr_bytes x_memory, const long x_offset, tr_bytes w_memory,
                       const long w_offset, const int has_weight, tr_bytes b_memory,
                       const long b_offset, const int has_bias, const T eps, tr_bytes y_memory,
                       const long y_offset, tr_bytes mean_memory, const long mean_offset,
                       tr_bytes var_memory, const long var_offset, const long batch,
                       const long channels, const long plane) {
  const long c = (long)get_global_id(0);
  if (c >= channels) return;
  global const T* x = (global const T*)(x_memory + x_offset);
  global T* y = (global T*)(y_memory + y_offset);
  const T n = (T)(batch * plane);
  T sum, squares;
  OVER_CHANNEL(sum, x[base + i]);
  const T mean = sum / n;
  OVER_CHANNEL(squares, (x[base + i] - mean) * (x[base + i] - mean));
  const T var = squares / n;
  ((global T*)(mean_memory + mean_offset))[c] = mean;
  ((global T*)(var_memory + var_offset))[c] = var;
  const T weight = has_weight ? ((global const T*)(w_memory + w_offset))[c] : (T)1;
  const T bias = has_bias ? ((global const T*)(b_memory + b_offset))[c] : (T)0;
  const T scale = weight / sqrt(var + eps);
  for (long k = 0; k < batch; ++k) {
    const long base = CHANNEL(k);
    for (long i = 0; i < plane; ++i) y[base + i] = (x[base + i] - mean) * scale + bias;
  }
}
kernel void batch_norm_gradient(tr_bytes g_memory, const long g_offset, tr_bytes x_memory,
                                const long x_offset, tr_bytes w_memory, const long w_offset,
                                const int has_weight, tr_bytes mean_memory, const long mean_offset,
                                tr_bytes var_memory, const long var_offset, const T eps,
                                tr_bytes gx_memory, const long gx_offset, tr_bytes gw_memory,
                                const long gw_offset, tr_bytes gb_memory, const long gb_offset,
                                const long batch, const long channels, const long plane) {
  const long c = (long)get_global_id(0);
  if (c >= channels) return;
  global const T* g = (global const T*)(g_memory + g_offset);
  global const T* x = (global const T*)(x_memory + x_offset);
  global T* gx = (global T*)(gx_memory + gx_offset);
  const T mean = ((global const T*)(mean_memory + mean_offset))[c];
  const T rstd = (T)1 / sqrt(((global const T*)(var_memory + var_offset))[c] + eps);
  T sum, dot;
  OVER_CHANNEL(sum, g[base + i]);
  OVER_CHANNEL(dot, g[base + i] * (x[base + i] - mean));
  dot *= rstd;
  ((global T*)(gw_memory + gw_offset))[c] = dot;
  ((global T*)(gb_memory + gb_offset))[c] = sum;
  const T n = (T)(batch * plane);
  const T weight = has_weight ? ((global const T*)(w_memory + w_offset))[c] : (T)1;
  const T scale = weight * rstd, mean_g = sum / n, slope = dot * rstd / n;
  for (long k = 0; k < batch; ++k) {
    const long base = CHANNEL(k);
    for (long i = 0; i < plane; ++i)
      gx[base + i] = scale * (g[base + i] - mean_g - (x[base + i] - mean) * slope);
  }
}

// ---- layer normalisation: rows of `length` ----

kernel void layer_norm(tr_bytes x_memory, const long x_offset, tr_bytes w_memory,
                       const long w_offset, const int has_weight, tr_bytes b_memory,
                       const long b_offset, const int has_bias, const T eps, tr_bytes y_memory,
                       const long y_offset, tr_bytes mean_memory, const long mean_offset,
                       tr_bytes rstd_memory, const long rstd_offset, const long length,
                       const long rows) {
  const long r = (long)get_global_id(0);
  if (r >= rows) return;
  global const T* x = (global const T*)(x_memory + x_offset) + r * length;
  global T* y = (global T*)(y_memory + y_offset) + r * length;
  global const T* w = (global const T*)(w_memory + w_offset);
  global const T* b = (global const T*)(b_memory + b_offset);
  T sum, squares;
  FOLDED(sum, length, x[i]);
  const T mean = sum / (T)length;
  FOLDED(squares, length, (x[i] - mean) * (x[i] - mean));
  const T rstd = (T)1 / sqrt(squares / (T)length + eps);
  ((global T*)(mean_memory + mean_offset))[r] = mean;
  ((global T*)(rstd_memory + rstd_offset))[r] = rstd;
  for (long i = 0; i < length; ++i) {
    const T normal = (x[i] - mean) * rstd;
    y[i] = normal * (has_weight ? w[i] : (T)1) + (has_bias ? b[i] : (T)0);
  }
}
kernel void layer_norm_gradient(tr_bytes g_memory, const long g_offset, tr_bytes x_memory,
                                const long x_offset, tr_bytes mean_memory, const long mean_offset,
                                tr_bytes rstd_memory, const long rstd_offset, tr_bytes w_memory,
                                const long w_offset, const int has_weight, tr_bytes gx_memory,
                                const long gx_offset, const long length, const long rows) {
  const long r = (long)get_global_id(0);
  if (r >= rows) return;
  global const T* g = (global const T*)(g_memory + g_offset) + r * length;
  global const T* x = (global const T*)(x_memory + x_offset) + r * length;
  global const T* w = (global const T*)(w_memory + w_offset);
  global T* gx = (global T*)(gx_memory + gx_offset) + r * length;
  const T mean = ((global const T*)(mean_memory + mean_offset))[r];
  const T rstd = ((global const T*)(rstd_memory + rstd_offset))[r];
  T sum, dot;
  FOLDED(sum, length, g[i] * (has_weight ? w[i] : (T)1));
  FOLDED(dot, length, g[i] * (has_weight ? w[i] : (T)1) * (x[i] - mean) * rstd);
  const T n = (T)length;
  for (long i = 0; i < length; ++i) {
    const T normal = (x[i] - mean) * rstd;
    gx[i] = rstd * (g[i] * (has_weight ? w[i] : (T)1) - sum / n - normal * dot / n);
  }
}
kernel void layer_norm_parameters(tr_bytes g_memory, const long g_offset, tr_bytes x_memory,
                                  const long x_offset, tr_bytes mean_memory,
                                  const long mean_offset, tr_bytes rstd_memory,
                                  const long rstd_offset, tr_bytes gw_memory, const long gw_offset,
                                  tr_bytes gb_memory, const long gb_offset, const long length,
                                  const long rows) {
  const long at = (long)get_global_id(0);
  if (at >= length) return;
  global const T* g = (global const T*)(g_memory + g_offset) + at;
  global const T* x = (global const T*)(x_memory + x_offset) + at;
  global const T* mean = (global const T*)(mean_memory + mean_offset);
  global const T* rstd = (global const T*)(rstd_memory + rstd_offset);
  T weight, bias;
  FOLDED(weight, rows, g[i * length] * (x[i * length] - mean[i]) * rstd[i]);
  FOLDED(bias, rows, g[i * length]);
  ((global T*)(gw_memory + gw_offset))[at] = weight;
  ((global T*)(gb_memory + gb_offset))[at] = bias;
}

// ---- negative log likelihood: (samples, classes), one item ----

#define NONE 0
#define MEAN 1
kernel void nll(tr_bytes x_memory, const long x_offset, tr_bytes target_memory,
                const long target_offset, tr_bytes w_memory, const long w_offset,
                const int has_weight, const long reduction, const long ignored,
                tr_bytes out_memory, const long out_offset, tr_bytes total_memory,
                const long total_offset, const long samples, const long classes,
                global long* fault) {
  if (get_global_id(0) != 0) return;
  global const T* x = (global const T*)(x_memory + x_offset);
  global const long* target = (global const long*)(target_memory + target_offset);
  global const T* w = (global const T*)(w_memory + w_offset);
  global T* out = (global T*)(out_memory + out_offset);
  T sum = 0, total = 0;
  for (long start = 0; start < samples; start += 256) {
    T part = 0, weights = 0;
    for (long n = start; n < min(start + 256, samples); ++n) {
      const long c = target[n];
      const int counts = c != ignored;
      if (counts && (c < 0 || c >= classes)) {
        fault[1] = c;
        fault[0] = 1;
        return;
      }
      const T factor = !counts ? (T)0 : has_weight ? w[c] : (T)1;
      const T loss = counts ? -factor * x[n * classes + c] : (T)0;
      if (reduction == NONE) out[n] = loss;
      part += loss;
      weights += factor;
    }
    sum += part;
    total += weights;
  }
  *(global T*)(total_memory + total_offset) = total;
  if (reduction != NONE) *out = reduction == MEAN ? sum / total : sum;
}
kernel void nll_gradient(tr_bytes g_memory, const long g_offset, tr_bytes target_memory,
                         const long target_offset, tr_bytes w_memory, const long w_offset,
                         const int has_weight, const long reduction, const long ignored,
                         tr_bytes total_memory, const long total_offset, tr_bytes out_memory,
                         const long out_offset, const long samples, const long classes,
                         global long* fault) {
  const long n = (long)get_global_id(0);
  if (n >= samples) return;
  global T* out = (global T*)(out_memory + out_offset) + n * classes;
  for (long c = 0; c < classes; ++c) out[c] = 0;
  const long c = ((global const long*)(target_memory + target_offset))[n];
  if (c == ignored) return;
  if (c < 0 || c >= classes) {
    fault[1] = c;
    fault[0] = 1;
    return;
  }
  const T factor = has_weight ? ((global const T*)(w_memory + w_offset))[c] : (T)1;
  const T scale = reduction == MEAN ? (T)1 / *(global const T*)(total_memory + total_offset) : (T)1;
  const T from = ((global const T*)(g_memory + g_offset))[reduction == NONE ? n : 0];
  out[c] = -factor * scale * from;
}
)CLC"
