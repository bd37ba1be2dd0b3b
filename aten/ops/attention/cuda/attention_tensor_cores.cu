// Attention of 16-bit numbers by tensor cores, after "FlashAttention-2" (Dao, 2023). Four warps
// share tiles of 64 rows in shared memory. Each warp has 16 queries (in the gradients of keys and
// values, 16 keys) and keeps their scores and sums in registers.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/tensor_cores.cuh"
#include "aten/ops/attention/cuda/attention.cuh"

namespace treadle::cuda {
namespace {

constexpr int kThreads = 128, kTile = 64, kTileSlices = kTile / 16;

// 64 rows of a matrix, as wide as `width` with zeros behind. Rows are 16 bytes apart from a
// multiple of 128, so that eight of them lie in different banks.
template <int width>
struct alignas(16) Tile {
  uint16_t rows[kTile][width + 8];
};
// 16 rows of a warp as left factors.
template <int width>
using Rows = uint32_t[width / 16][4];
// Sums (16, width).
template <int width>
using Sums = float[width / 8][4];

__device__ inline int lane() { return threadIdx.x % 32; }
__device__ inline int warp_row() { return threadIdx.x / 32 * 16; }
__device__ inline int group() { return lane() / 4; }
__device__ inline int pair() { return lane() % 4 * 2; }

// The views whose rows can be read 16 bytes at a time.
struct Packs {
  bool query, key, value, grad;
};

template <class T, int width>
__device__ inline void load(Tile<width>& tile, const Matrix<T>& m, int64_t first, int64_t end,
                            int64_t columns, bool packs) {
  if (packs) {
    constexpr int kPieces = width / 8;
    for (int i = threadIdx.x; i < kTile * kPieces; i += kThreads) {
      const int r = i / kPieces, c = i % kPieces * 8;
      uint4 v = {0, 0, 0, 0};
      if (first + r < end && c < columns)
        v = *reinterpret_cast<const uint4*>(m.data + (first + r) * m.row + c);
      *reinterpret_cast<uint4*>(&tile.rows[r][c]) = v;
    }
  } else {
    for (int i = threadIdx.x; i < kTile * width; i += kThreads) {
      const int r = i / width, c = i % width;
      tile.rows[r][c] = first + r < end && c < columns ? m.at(first + r, c).bits : uint16_t(0);
    }
  }
}
// This warp's rows of a tile.
template <int width>
__device__ inline void take_rows(Rows<width>& rows, const Tile<width>& tile) {
#pragma unroll
  for (int d = 0; d < width / 16; ++d)
    load_matrices(rows[d], &tile.rows[warp_row() + lane() % 16][d * 16 + lane() / 16 * 8]);
}
template <class T, int width>
__device__ inline void load_rows(Rows<width>& rows, Tile<width>& tile, const Matrix<T>& m,
                                 int64_t first, int64_t end, int64_t columns, bool packs) {
  __syncthreads();
  load(tile, m, first, end, columns, packs);
  __syncthreads();
  take_rows(rows, tile);
}

// The products (16, 16) of this warp's rows with rows 16 slice .. of a tile.
template <class T, int width>
__device__ inline void multiply_rows(float (&low)[4], float (&high)[4], const Rows<width>& rows,
                                     const Tile<width>& tile, int slice) {
#pragma unroll
  for (int d = 0; d < width / 16; ++d) {
    uint32_t m[4];
    load_matrices(
        m, &tile.rows[slice * 16 + lane() % 8 + lane() / 16 * 8][d * 16 + lane() / 8 % 2 * 8]);
    multiply_16x8<T>(low, rows[d], m[0], m[1]);
    multiply_16x8<T>(high, rows[d], m[2], m[3]);
  }
}
// sums += a (16, 16), in two halves, times rows 16 slice .. of a tile.
template <class T, int width>
__device__ inline void add_products(Sums<width>& sums, const float (&low)[4],
                                    const float (&high)[4], const Tile<width>& tile, int slice) {
  const uint32_t a[4] = {packed<T>(low[0], low[1]), packed<T>(low[2], low[3]),
                         packed<T>(high[0], high[1]), packed<T>(high[2], high[3])};
#pragma unroll
  for (int n = 0; n < width / 16; ++n) {
    uint32_t m[4];
    load_transposed_matrices(m, &tile.rows[slice * 16 + lane() % 16][n * 16 + lane() / 16 * 8]);
    multiply_16x8<T>(sums[2 * n], a, m[0], m[1]);
    multiply_16x8<T>(sums[2 * n + 1], a, m[2], m[3]);
  }
}

// The common value of the four threads of a row.
template <class Join>
__device__ inline float joined_in_row(float v, Join join) {
  v = join(v, __shfl_xor_sync(0xffffffffu, v, 1));
  return join(v, __shfl_xor_sync(0xffffffffu, v, 2));
}

// Whether every query of a tile sees every key of another. Scores are then scaled products.
template <class T>
__device__ inline bool all_seen(const Attention<T>& a, int64_t q0, int64_t k0) {
  return a.mask_kind == Mask::None && q0 + kTile <= a.length && k0 + kTile <= a.source &&
         !(a.causal && k0 + kTile > q0 + 1);
}

// Writes sums times a factor for each of this thread's two rows; `first` is this warp's first row.
template <class T, int width>
__device__ inline void store(T* to, const Sums<width>& sums, const float (&factor)[2],
                             int64_t first, int64_t end, int64_t columns) {
  for (int half = 0; half < 2; ++half) {
    const int64_t row = first + group() + half * 8;
    if (row >= end) continue;
#pragma unroll
    for (int n = 0; n < width / 8; ++n) {
      for (int e = 0; e < 2; ++e) {
        const int64_t c = n * 8 + pair() + e;
        if (c < columns) to[row * columns + c] = narrowed<T>(sums[n][half * 2 + e] * factor[half]);
      }
    }
  }
}

template <class T, int width>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(const Attention<T> a, const AttentionResults<T> to, Packs packs,
                   int64_t blocks) {
  __shared__ Tile<width> keys, values;
  const int64_t batch = blockIdx.x / blocks, q0 = blockIdx.x % blocks * kTile;
  const int64_t mask_at = a.offset(a.mask, batch), end = a.keys_for(q0 + kTile);
  const auto key = a.matrix(a.key, batch), value = a.matrix(a.value, batch);
  Rows<width> query;
  load_rows(query, keys, a.matrix(a.query, batch), q0, a.length, a.width, packs.query);
  Sums<width> sums = {};
  float most[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
  for (int64_t k0 = 0; k0 < end; k0 += kTile) {
    __syncthreads();
    load(keys, key, k0, a.source, a.width, packs.key);
    load(values, value, k0, a.source, a.value_width, packs.value);
    __syncthreads();
    Sums<kTile> s = {};
#pragma unroll
    for (int slice = 0; slice < kTileSlices; ++slice)
      multiply_rows<T>(s[2 * slice], s[2 * slice + 1], query, keys, slice);
    const bool plain = all_seen(a, q0, k0);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t i = q0 + warp_row() + group() + half * 8;
      float largest = -INFINITY;
#pragma unroll
      for (int n = 0; n < kTile / 8; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& v = s[n][half * 2 + e];
          v = plain ? v * a.scale : a.score(v, mask_at, i, k0 + n * 8 + pair() + e);
          largest = LargerNumber()(largest, v);
        }
      }
      const float now = LargerNumber()(most[half], joined_in_row(largest, LargerNumber()));
      // Only masked keys so far, or NaN: there is no maximum to subtract.
      const bool none = now == -INFINITY;
      const float shrink = none ? 1.0f : __expf(most[half] - now), taken = none ? 0.0f : now;
      float sum = 0;
#pragma unroll
      for (int n = 0; n < kTile / 8; ++n) {
        float &first = s[n][half * 2], &second = s[n][half * 2 + 1];
        first = __expf(first - taken);
        second = __expf(second - taken);
        sum += first + second;
        if (a.dropout.active) {
          float kept[2];
          a.dropout.pair(batch * a.length + i, a.source, k0 + n * 8 + pair(), kept[0], kept[1]);
          first *= kept[0];
          second *= kept[1];
        }
      }
      total[half] = total[half] * shrink + joined_in_row(sum, Plus());
      most[half] = now;
#pragma unroll
      for (int n = 0; n < width / 8; ++n) {
        sums[n][half * 2] *= shrink;
        sums[n][half * 2 + 1] *= shrink;
      }
    }
#pragma unroll
    for (int slice = 0; slice < kTileSlices; ++slice)
      add_products<T>(sums, s[2 * slice], s[2 * slice + 1], values, slice);
  }
  float factor[2];
  for (int half = 0; half < 2; ++half) {
    const int64_t i = q0 + warp_row() + group() + half * 8;
    const bool none = total[half] == 0;
    factor[half] = none ? 0.0f : 1.0f / total[half];
    if (pair() == 0 && i < a.length)
      to.logsumexp[batch * a.length + i] = none ? -INFINITY : most[half] + log(total[half]);
  }
  store<T, width>(to.output + batch * a.length * a.value_width, sums, factor, q0 + warp_row(),
                  a.length, a.value_width);
}

// For a query and a key: their product becomes the probability, times the factor of dropout
// (`kept`), and the product of their gradient and value becomes the score's gradient. A key that no
// query sees has no gradient, whatever the product.
template <class T>
__device__ inline void to_gradient(const Attention<T>& a, bool plain, int64_t mask_at, int64_t i,
                                   int64_t j, float logsumexp, float delta, float kept,
                                   float& product, float& gradient) {
  const float s = plain ? product * a.scale : a.score(product, mask_at, i, j);
  const bool seen = j < a.source && logsumexp != -INFINITY;
  const float p = seen ? __expf(s - logsumexp) : 0.0f;
  gradient = seen ? p * (gradient * kept - delta) : 0.0f;
  product = p * kept;
}

template <class T, int width>
__global__ void __launch_bounds__(kThreads)
    query_gradient_kernel(const Attention<T> a, const AttentionResults<T> to, Packs packs,
                          int64_t blocks) {
  __shared__ Tile<width> keys, values;
  const int64_t batch = blockIdx.x / blocks, q0 = blockIdx.x % blocks * kTile;
  const int64_t mask_at = a.offset(a.mask, batch), end = a.keys_for(q0 + kTile);
  const auto key = a.matrix(a.key, batch), value = a.matrix(a.value, batch);
  Rows<width> query, grad;
  load_rows(query, keys, a.matrix(a.query, batch), q0, a.length, a.width, packs.query);
  load_rows(grad, values, a.matrix(a.grad, batch), q0, a.length, a.value_width, packs.grad);
  float logsumexp[2], delta[2];
  for (int half = 0; half < 2; ++half) {
    const int64_t i = q0 + warp_row() + group() + half * 8;
    logsumexp[half] = i < a.length ? to.logsumexp[batch * a.length + i] : -INFINITY;
    delta[half] = i < a.length ? to.delta[batch * a.length + i] : 0.0f;
  }
  Sums<width> sums = {};
  for (int64_t k0 = 0; k0 < end; k0 += kTile) {
    __syncthreads();
    load(keys, key, k0, a.source, a.width, packs.key);
    load(values, value, k0, a.source, a.value_width, packs.value);
    __syncthreads();
    const bool plain = all_seen(a, q0, k0);
#pragma unroll 1
    for (int slice = 0; slice < kTileSlices; ++slice) {
      float p[2][4] = {}, ds[2][4] = {};
      multiply_rows<T>(p[0], p[1], query, keys, slice);
      multiply_rows<T>(ds[0], ds[1], grad, values, slice);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int64_t i = q0 + warp_row() + group() + half * 8;
          const int64_t j = k0 + slice * 16 + n * 8 + pair();
          float kept[2] = {1, 1};
          if (a.dropout.active) a.dropout.pair(batch * a.length + i, a.source, j, kept[0], kept[1]);
#pragma unroll
          for (int e = 0; e < 2; ++e)
            to_gradient(a, plain, mask_at, i, j + e, logsumexp[half], delta[half], kept[e],
                        p[n][half * 2 + e], ds[n][half * 2 + e]);
        }
      }
      add_products<T>(sums, ds[0], ds[1], keys, slice);
    }
  }
  const float factor[2] = {a.scale, a.scale};
  store<T, width>(to.grad_query + batch * a.length * a.width, sums, factor, q0 + warp_row(),
                  a.length, a.width);
}

template <class T, int width>
__global__ void __launch_bounds__(kThreads)
    key_gradient_kernel(const Attention<T> a, const AttentionResults<T> to, Packs packs,
                        int64_t blocks) {
  __shared__ Tile<width> queries, grads;
  __shared__ float logsumexp[kTile], delta[kTile];
  const int64_t batch = blockIdx.x / blocks, k0 = blockIdx.x % blocks * kTile;
  const int64_t mask_at = a.offset(a.mask, batch);
  const auto query = a.matrix(a.query, batch), grad = a.matrix(a.grad, batch);
  Rows<width> key, value;
  load_rows(key, queries, a.matrix(a.key, batch), k0, a.source, a.width, packs.key);
  load_rows(value, grads, a.matrix(a.value, batch), k0, a.source, a.value_width, packs.value);
  Sums<width> keys = {}, values = {};
  // Earlier queries do not see these keys.
  for (int64_t q0 = a.causal ? k0 : 0; q0 < a.length; q0 += kTile) {
    __syncthreads();
    load(queries, query, q0, a.length, a.width, packs.query);
    load(grads, grad, q0, a.length, a.value_width, packs.grad);
    if (threadIdx.x < kTile) {
      const int64_t i = q0 + threadIdx.x;
      logsumexp[threadIdx.x] = i < a.length ? to.logsumexp[batch * a.length + i] : -INFINITY;
      delta[threadIdx.x] = i < a.length ? to.delta[batch * a.length + i] : 0.0f;
    }
    __syncthreads();
    const bool plain = all_seen(a, q0, k0);
#pragma unroll 1
    for (int slice = 0; slice < kTileSlices; ++slice) {
      // Keys down, queries across.
      float p[2][4] = {}, ds[2][4] = {};
      multiply_rows<T>(p[0], p[1], key, queries, slice);
      multiply_rows<T>(ds[0], ds[1], value, grads, slice);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int at = slice * 16 + n * 8 + pair() + e % 2;
          const int64_t i = q0 + at, j = k0 + warp_row() + group() + e / 2 * 8;
          const float kept =
              a.dropout.active ? a.dropout.kept(batch * a.length + i, a.source, j) : 1.0f;
          to_gradient(a, plain, mask_at, i, j, logsumexp[at], delta[at], kept, p[n][e], ds[n][e]);
        }
      }
      add_products<T>(values, p[0], p[1], grads, slice);
      add_products<T>(keys, ds[0], ds[1], queries, slice);
    }
  }
  const float scaled[2] = {a.scale, a.scale}, plain[2] = {1, 1};
  store<T, width>(to.grad_key + batch * a.source * a.width, keys, scaled, k0 + warp_row(), a.source,
                  a.width);
  store<T, width>(to.grad_value + batch * a.source * a.value_width, values, plain, k0 + warp_row(),
                  a.source, a.value_width);
}

// ---- calls ----

bool packs(const View& view, int dims, int64_t columns) {
  bool all = view.column == 1 && view.row % 8 == 0 && columns % 8 == 0 &&
             reinterpret_cast<uintptr_t>(view.data) % 16 == 0;
  for (int d = 0; d < dims; ++d) all = all && view.leading[d] % 8 == 0;
  return all;
}

template <class T, class F>
void launch(F kernel, const Attention<T>& a, const AttentionResults<T>& to, int64_t rows,
            cudaStream_t stream) {
  const int64_t blocks = (rows + kTile - 1) / kTile;
  if (a.batches * blocks == 0) return;
  check<ErrorKind::Runtime>(a.batches * blocks <= INT32_MAX, OpName("scaled_dot_product_attention"),
                            "expected fewer blocks than 2^31 on cuda, got ", a.batches * blocks);
  const Packs which = {packs(a.query, a.dims, a.width), packs(a.key, a.dims, a.width),
                       packs(a.value, a.dims, a.value_width), packs(a.grad, a.dims, a.value_width)};
  kernel<<<static_cast<unsigned>(a.batches * blocks), kThreads, 0, stream>>>(a, to, which, blocks);
  check_launched();
}

template <class T>
bool narrow(const Attention<T>& a) {
  return a.width <= 64 && a.value_width <= 64;
}

}  // namespace

template <class T>
void attention_forward_by_tensor_cores(const Attention<T>& a, const AttentionResults<T>& to,
                                       cudaStream_t stream) {
  launch(narrow(a) ? &forward_kernel<T, 64> : &forward_kernel<T, 128>, a, to, a.length, stream);
}
template <class T>
void attention_backward_by_tensor_cores(const Attention<T>& a, const AttentionResults<T>& to,
                                        cudaStream_t stream) {
  launch(narrow(a) ? &query_gradient_kernel<T, 64> : &query_gradient_kernel<T, 128>, a, to,
         a.length, stream);
  launch(narrow(a) ? &key_gradient_kernel<T, 64> : &key_gradient_kernel<T, 128>, a, to, a.source,
         stream);
}

template void attention_forward_by_tensor_cores(const Attention<Half>&,
                                                const AttentionResults<Half>&, cudaStream_t);
template void attention_forward_by_tensor_cores(const Attention<BFloat16>&,
                                                const AttentionResults<BFloat16>&, cudaStream_t);
template void attention_backward_by_tensor_cores(const Attention<Half>&,
                                                 const AttentionResults<Half>&, cudaStream_t);
template void attention_backward_by_tensor_cores(const Attention<BFloat16>&,
                                                 const AttentionResults<BFloat16>&, cudaStream_t);

}  // namespace treadle::cuda
