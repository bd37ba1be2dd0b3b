R"CLC(
// out[b, i, j] = beta * bias[b, i, j] + alpha * sum over k of left[b, i, k] * right[b, k, j].
// Strides are in elements, of batch, row and column; `out` is contiguous. `left` and `right` hold
// T, `bias` and `out` hold S; without a bias nothing is added.
typedef struct { long batches, rows, columns, depth; long left[3], right[3], bias[3]; } product;

inline T finished(const product p, global const S* bias, T alpha, T beta, int has_bias, long b,
                  long i, long j, T sum) {
  const T scaled = MUL(alpha, sum);
  if (!has_bias) return scaled;
  return ADD(MUL(beta, LOAD(bias, b * p.bias[0] + i * p.bias[1] + j * p.bias[2])), scaled);
}

// Any dtype and any strides; an item does `per` elements of the result.
kernel void product_of_elements(const product p, tr_bytes left_memory, const long left_offset,
                                tr_bytes right_memory, const long right_offset,
                                tr_bytes bias_memory, const long bias_offset, const int has_bias,
                                const T alpha, const T beta, tr_bytes out_memory,
                                const long out_offset, const long per) {
  global const T* left = (global const T*)(left_memory + left_offset);
  global const T* right = (global const T*)(right_memory + right_offset);
  global const S* bias = (global const S*)(bias_memory + bias_offset);
  global S* out = (global S*)(out_memory + out_offset);
  long at = (long)get_global_id(0) * per;
  const long end = min(at + per, p.batches * p.rows * p.columns);
  for (; at < end; ++at) {
    const long j = at % p.columns, i = at / p.columns % p.rows, b = at / p.columns / p.rows;
    global const T* x = left + b * p.left[0] + i * p.left[1];
    global const T* y = right + b * p.right[0] + j * p.right[2];
    T sum = (T)(0);
    for (long k = 0; k < p.depth; ++k) sum = ADD(sum, MUL(x[k * p.left[2]], y[k * p.right[1]]));
    STORE(out, at, finished(p, bias, alpha, beta, has_bias, b, i, j, sum));
  }
}

#ifdef LANES
// float and double, where the columns of `right` follow each other: an item does a tile of ROWS by
// 2 * LANES elements, with the sums in vectors. Sums of 256 terms are added up, so that the error
// of long ones does not grow with their length.
#define ROWS 6
#define V TR_JOIN(T, LANES)
#define VLOAD TR_JOIN(vload, LANES)
#define VSTORE TR_JOIN(vstore, LANES)
#define WIDTH (2 * LANES)
kernel void product_of_tiles(const product p, tr_bytes left_memory, const long left_offset,
                             tr_bytes right_memory, const long right_offset, tr_bytes bias_memory,
                             const long bias_offset, const int has_bias, const T alpha,
                             const T beta, tr_bytes out_memory, const long out_offset,
                             const long tiles) {
  const long at = (long)get_global_id(0);
  if (at >= tiles) return;
  const long across = (p.columns + WIDTH - 1) / WIDTH, down = (p.rows + ROWS - 1) / ROWS;
  const long first_row = at % down * ROWS, first_column = at / down % across * WIDTH;
  const long b = at / down / across;
  const long rows = min((long)ROWS, p.rows - first_row);
  const long columns = min((long)WIDTH, p.columns - first_column);
  global const T* x[ROWS];
  for (int r = 0; r < ROWS; ++r)  // rows past the end repeat the last one
    x[r] = (global const T*)(left_memory + left_offset) + b * p.left[0] +
           min(first_row + r, p.rows - 1) * p.left[1];
  global const T* y =
      (global const T*)(right_memory + right_offset) + b * p.right[0] + first_column;
  V low[ROWS], high[ROWS];
  for (int r = 0; r < ROWS; ++r) low[r] = high[r] = (V)(0);
  for (long start = 0; start < p.depth; start += 256) {
    const long end = min(start + 256, p.depth);
    V part_low[ROWS], part_high[ROWS];
    for (int r = 0; r < ROWS; ++r) part_low[r] = part_high[r] = (V)(0);
    if (columns == WIDTH) {
      for (long k = start; k < end; ++k) {
        global const T* row = y + k * p.right[1];
        const V v0 = VLOAD(0, row), v1 = VLOAD(1, row);
        __attribute__((opencl_unroll_hint(ROWS)))
        for (int r = 0; r < ROWS; ++r) {
          const T factor = x[r][k * p.left[2]];
          part_low[r] = fma((V)(factor), v0, part_low[r]);
          part_high[r] = fma((V)(factor), v1, part_high[r]);
        }
      }
    } else {
      for (long k = start; k < end; ++k) {
        T row[WIDTH];
        for (int j = 0; j < WIDTH; ++j) row[j] = j < columns ? y[k * p.right[1] + j] : (T)0;
        const V v0 = VLOAD(0, row), v1 = VLOAD(1, row);
        __attribute__((opencl_unroll_hint(ROWS)))
        for (int r = 0; r < ROWS; ++r) {
          const T factor = x[r][k * p.left[2]];
          part_low[r] = fma((V)(factor), v0, part_low[r]);
          part_high[r] = fma((V)(factor), v1, part_high[r]);
        }
      }
    }
    for (int r = 0; r < ROWS; ++r) {
      low[r] += part_low[r];
      high[r] += part_high[r];
    }
  }
  global const S* bias = (global const S*)(bias_memory + bias_offset);
  global S* out = (global S*)(out_memory + out_offset) + b * p.rows * p.columns;
  for (int r = 0; r < ROWS; ++r) {
    if (r >= rows) break;
    T sums[WIDTH];
    VSTORE(low[r], 0, sums);
    VSTORE(high[r], 1, sums);
    const long i = first_row + r;
    for (long j = 0; j < columns; ++j)
      STORE(out, i * p.columns + first_column + j,
            finished(p, bias, alpha, beta, has_bias, b, i, first_column + j, sums[j]));
  }
}
#endif
)CLC"
