// Attention and its gradients in blocks, for numbers of any floating dtype and matrices of any
// width. 16-bit numbers of common widths go to tensor cores (attention_tensor_cores.cu).
//
// 256 threads, 16 by 16, hold a tile of scores in registers: queries down, keys across. Results
// wider than 64 columns (128 of float) are cut, and each part computes the scores itself.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/_attention.h"
#include "aten/ops/_attention_backward.h"
#include "aten/ops/_attention_dropout_mask.h"
#include "aten/ops/attention/cuda/attention.cuh"
#include "aten/ops/contiguous.h"

namespace treadle::cuda {
namespace {

constexpr int kSide = 16;   // threads across, and down
constexpr int kKeys = 64;   // keys of a tile
constexpr int kSlice = 16;  // how much of an inner dimension is in shared memory at a time

// Memory of a block. A tile has rows for queries.
template <class C, int rows, int columns>
struct Room {
  C left[kSlice][rows + 1];  // a slice of the queries' rows, by columns
  C right[kSlice][(columns > kKeys ? columns : kKeys) + 1];
  C tile[rows][kKeys + 1];
};

__device__ inline int across() { return threadIdx.x % kSide; }
__device__ inline int down() { return threadIdx.x / kSide; }

// s[i][j] = the product of row q0 + down * per + i of q with row k0 + across + 16 j of k; rows
// beyond the ends count as 0.
template <class T, int per, class R>
__device__ inline void multiply_rows(const Matrix<T>& q, int64_t q0, int64_t q_end,
                                     const Matrix<T>& k, int64_t k0, int64_t k_end, int64_t depth,
                                     R& room, Computed<T> (&s)[per][4]) {
  using C = Computed<T>;
#pragma unroll
  for (int i = 0; i < per; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) s[i][j] = 0;
  for (int64_t d0 = 0; d0 < depth; d0 += kSlice) {
    __syncthreads();
    const int64_t d = d0 + across();
    for (int r = down(); r < per * kSide; r += kSide)
      room.left[across()][r] = q0 + r < q_end && d < depth ? widened(q.at(q0 + r, d)) : C(0);
    for (int r = down(); r < kKeys; r += kSide)
      room.right[across()][r] = k0 + r < k_end && d < depth ? widened(k.at(k0 + r, d)) : C(0);
    __syncthreads();
#pragma unroll
    for (int e = 0; e < kSlice; ++e) {
#pragma unroll
      for (int i = 0; i < per; ++i) {
        const C left = room.left[e][down() * per + i];
#pragma unroll
        for (int j = 0; j < 4; ++j)
          s[i][j] = fma(left, room.right[e][across() + kSide * j], s[i][j]);
      }
    }
  }
}

// sums[i][j] += factor(down * per + i, r) * m[first + r][c0 + across + 16 j] for r of [0, count), a
// multiple of 16; rows beyond the end and columns beyond the width count as 0.
template <class T, int per, int wide, class R, class F>
__device__ inline void add_products(F factor, int count, const Matrix<T>& m, int64_t first,
                                    int64_t end, int64_t c0, int64_t width, R& room,
                                    Computed<T> (&sums)[per][wide]) {
  using C = Computed<T>;
  for (int r0 = 0; r0 < count; r0 += kSlice) {
    __syncthreads();
    const int64_t row = first + r0 + down();
    for (int c = across(); c < wide * kSide; c += kSide)
      room.right[down()][c] = row < end && c0 + c < width ? widened(m.at(row, c0 + c)) : C(0);
    __syncthreads();
#pragma unroll
    for (int e = 0; e < kSlice; ++e) {
#pragma unroll
      for (int i = 0; i < per; ++i) {
        const C left = factor(down() * per + i, r0 + e);
#pragma unroll
        for (int j = 0; j < wide; ++j)
          sums[i][j] = fma(left, room.right[e][across() + kSide * j], sums[i][j]);
      }
    }
  }
}

// A value that the 16 threads of a row of the tile agree on.
template <class C, class Join>
__device__ inline C joined_across(C v, Join join) {
#pragma unroll
  for (int step = 1; step < kSide; step *= 2) v = join(v, __shfl_xor_sync(0xffffffffu, v, step));
  return v;
}

template <class T, int per, int wide>
__global__ void __launch_bounds__(kBlock)
    forward_kernel(const Attention<T> a, const AttentionResults<T> to, int64_t blocks) {
  using C = Computed<T>;
  constexpr int kRows = per * kSide;
  __shared__ Room<C, kRows, wide * kSide> room;
  const int64_t batch = blockIdx.x / blocks, q0 = blockIdx.x % blocks * kRows;
  const int64_t c0 = static_cast<int64_t>(blockIdx.y) * wide * kSide;
  const auto q = a.matrix(a.query, batch), k = a.matrix(a.key, batch), v = a.matrix(a.value, batch);
  const int64_t mask_at = a.offset(a.mask, batch), end = a.keys_for(q0 + kRows);
  const int64_t first = q0 + down() * per;  // this thread's rows
  C sums[per][wide] = {}, most[per], total[per];
#pragma unroll
  for (int i = 0; i < per; ++i) {
    most[i] = -INFINITY;
    total[i] = 0;
  }
  for (int64_t k0 = 0; k0 < end; k0 += kKeys) {
    C s[per][4];
    multiply_rows<T>(q, q0, a.length, k, k0, a.source, a.width, room, s);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < per; ++i) {
      C largest = -INFINITY;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        s[i][j] = a.score(s[i][j], mask_at, first + i, k0 + across() + kSide * j);
        largest = LargerNumber()(largest, s[i][j]);
      }
      const C now = LargerNumber()(most[i], joined_across(largest, LargerNumber()));
      // Only masked keys so far, or NaN: there is no maximum to subtract.
      const bool none = now == -INFINITY;
      const C shrink = none ? C(1) : exp(most[i] - now), taken = none ? C(0) : now;
      C sum = 0;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int64_t at = k0 + across() + kSide * j;
        C p = exp(s[i][j] - taken);
        sum += p;
        if (a.dropout.active) p *= a.dropout.kept(batch * a.length + first + i, a.source, at);
        room.tile[down() * per + i][across() + kSide * j] = p;
      }
      total[i] = total[i] * shrink + joined_across(sum, Plus());
      most[i] = now;
#pragma unroll
      for (int j = 0; j < wide; ++j) sums[i][j] *= shrink;
    }
    add_products<T>([&](int row, int key) { return room.tile[row][key]; }, kKeys, v, k0, a.source,
                    c0, a.value_width, room, sums);
  }
#pragma unroll
  for (int i = 0; i < per; ++i) {
    if (first + i >= a.length) continue;
    const int64_t row = batch * a.length + first + i;
    const bool none = total[i] == C(0);
#pragma unroll
    for (int j = 0; j < wide; ++j) {
      const int64_t c = c0 + across() + kSide * j;
      if (c < a.value_width)
        to.output[row * a.value_width + c] = narrowed<T>(none ? C(0) : sums[i][j] / total[i]);
    }
    if (blockIdx.y == 0 && across() == 0)
      to.logsumexp[row] = none ? -INFINITY : most[i] + log(total[i]);
  }
}

// A tile of backward: p has the probabilities after dropout, ds the scores' gradients.
template <class T, int per, class R>
__device__ inline void gradient_tile(const Attention<T>& a, const AttentionResults<T>& to,
                                     int64_t batch, int64_t q0, int64_t k0, R& room,
                                     Computed<T> (&p)[per][4], Computed<T> (&ds)[per][4]) {
  using C = Computed<T>;
  const int64_t mask_at = a.offset(a.mask, batch), first = q0 + down() * per;
  multiply_rows<T>(a.matrix(a.query, batch), q0, a.length, a.matrix(a.key, batch), k0, a.source,
                   a.width, room, p);
  multiply_rows<T>(a.matrix(a.grad, batch), q0, a.length, a.matrix(a.value, batch), k0, a.source,
                   a.value_width, room, ds);
#pragma unroll
  for (int i = 0; i < per; ++i) {
    const int64_t row = batch * a.length + first + i;
    const bool inside = first + i < a.length;
    const C total = inside ? to.logsumexp[row] : C(0), delta = inside ? to.delta[row] : C(0);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int64_t at = k0 + across() + kSide * j;
      const C s = a.score(p[i][j], mask_at, first + i, at);
      const C probability = total == -INFINITY ? C(0) : exp(s - total);
      const C kept = a.dropout.active ? a.dropout.kept(row, a.source, at) : C(1);
      // A key that no query sees has no gradient, whatever its product.
      const bool seen = inside && at < a.source && total != -INFINITY;
      ds[i][j] = seen ? probability * (ds[i][j] * kept - delta) : C(0);
      p[i][j] = probability * kept;
    }
  }
}
template <int per, class R, class C>
__device__ inline void keep_tile(R& room, const C (&s)[per][4]) {
  __syncthreads();
#pragma unroll
  for (int i = 0; i < per; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) room.tile[down() * per + i][across() + kSide * j] = s[i][j];
}

template <class T, int per, int wide>
__global__ void __launch_bounds__(kBlock)
    query_gradient_kernel(const Attention<T> a, const AttentionResults<T> to, int64_t blocks) {
  using C = Computed<T>;
  constexpr int kRows = per * kSide;
  __shared__ Room<C, kRows, wide * kSide> room;
  const int64_t batch = blockIdx.x / blocks, q0 = blockIdx.x % blocks * kRows;
  const int64_t c0 = static_cast<int64_t>(blockIdx.y) * wide * kSide;
  const int64_t end = a.keys_for(q0 + kRows);
  C sums[per][wide] = {};
  for (int64_t k0 = 0; k0 < end; k0 += kKeys) {
    C p[per][4], ds[per][4];
    gradient_tile(a, to, batch, q0, k0, room, p, ds);
    keep_tile(room, ds);
    add_products<T>([&](int row, int key) { return room.tile[row][key]; }, kKeys,
                    a.matrix(a.key, batch), k0, a.source, c0, a.width, room, sums);
  }
#pragma unroll
  for (int i = 0; i < per; ++i) {
    const int64_t row = q0 + down() * per + i;
#pragma unroll
    for (int j = 0; j < wide; ++j) {
      const int64_t c = c0 + across() + kSide * j;
      if (row < a.length && c < a.width)
        to.grad_query[(batch * a.length + row) * a.width + c] = narrowed<T>(sums[i][j] * a.scale);
    }
  }
}

template <class T, int per, int wide>
__global__ void __launch_bounds__(kBlock)
    key_gradient_kernel(const Attention<T> a, const AttentionResults<T> to, int64_t blocks) {
  using C = Computed<T>;
  constexpr int kRows = per * kSide, kPer = kKeys / kSide;
  __shared__ Room<C, kRows, wide * kSide> room;
  const int64_t batch = blockIdx.x / blocks, k0 = blockIdx.x % blocks * kKeys;
  const int64_t c0 = static_cast<int64_t>(blockIdx.y) * wide * kSide;
  const auto of_key = [&](int key, int row) { return room.tile[row][key]; };
  C keys[kPer][wide] = {}, values[kPer][wide] = {};
  // Earlier queries do not see these keys.
  for (int64_t q0 = a.causal ? k0 / kRows * kRows : 0; q0 < a.length; q0 += kRows) {
    C p[per][4], ds[per][4];
    gradient_tile(a, to, batch, q0, k0, room, p, ds);
    keep_tile(room, p);
    add_products<T>(of_key, kRows, a.matrix(a.grad, batch), q0, a.length, c0, a.value_width, room,
                    values);
    keep_tile(room, ds);
    add_products<T>(of_key, kRows, a.matrix(a.query, batch), q0, a.length, c0, a.width, room, keys);
  }
#pragma unroll
  for (int i = 0; i < kPer; ++i) {
    const int64_t key = k0 + down() * kPer + i, row = batch * a.source + key;
#pragma unroll
    for (int j = 0; j < wide; ++j) {
      if (key >= a.source) continue;
      const int64_t c = c0 + across() + kSide * j;
      if (c < a.width) to.grad_key[row * a.width + c] = narrowed<T>(keys[i][j] * a.scale);
      if (c < a.value_width) to.grad_value[row * a.value_width + c] = narrowed<T>(values[i][j]);
    }
  }
}

// The sum of grad * output of each query, by 32 threads.
template <class T>
__global__ void delta_kernel(const Attention<T> a, const T* output, Computed<T>* delta) {
  using C = Computed<T>;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kBlock / 32) + threadIdx.x / 32;
  const bool inside = row < a.batches * a.length;
  C sum = 0;
  if (inside) {
    const auto grad = a.matrix(a.grad, row / a.length);
    for (int64_t c = threadIdx.x % 32; c < a.value_width; c += 32)
      sum += widened(grad.at(row % a.length, c)) * widened(output[row * a.value_width + c]);
  }
  for (int step = 1; step < 32; step *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (inside && threadIdx.x % 32 == 0) delta[row] = sum;
}

// ---- calls ----

View view_of(const Tensor& t) {
  View v;
  if (!t.defined()) return v;
  const size_t leading = t.sizes().size() - 2;
  v.data = t.data();
  for (size_t d = 0; d < leading; ++d) v.leading[d] = t.strides()[d];
  v.row = t.strides()[leading];
  v.column = t.strides()[leading + 1];
  return v;
}

template <class C>
AttentionDropout<C> dropout_of(double p, int64_t seed) {
  return {p > 0, p >= 1, static_cast<uint32_t>(std::min(p * 0x1p32, 0x1p32 - 1)),
          static_cast<C>(p < 1 ? 1 / (1 - p) : 0), static_cast<uint64_t>(seed)};
}

template <class T>
Attention<T> attention_of(const Tensor& query, const Tensor& key, const Tensor& value,
                          const Tensor& mask, double dropout_p, bool is_causal, double scale,
                          int64_t seed) {
  using C = Computed<T>;
  const size_t leading = query.sizes().size() - 2;
  check<ErrorKind::Runtime>(leading <= kMaxLeading, OpName("scaled_dot_product_attention"),
                            "expected at most ", kMaxLeading + 2, " dimensions on cuda, got ",
                            query.dim());
  Attention<T> a{};
  a.dims = static_cast<int>(leading);
  a.batches = 1;
  for (size_t d = 0; d < leading; ++d) a.batches *= a.sizes[d] = query.sizes()[d];
  a.query = view_of(query);
  a.key = view_of(key);
  a.value = view_of(value);
  a.mask = view_of(mask);
  a.mask_kind = !mask.defined()                    ? Mask::None
                : mask.dtype() == ScalarType::Bool ? Mask::Bool
                                                   : Mask::Added;
  a.causal = is_causal;
  a.scale = static_cast<C>(scale);
  a.dropout = dropout_of<C>(dropout_p, seed);
  a.length = query.size(-2);
  a.source = key.size(-2);
  a.width = query.size(-1);
  a.value_width = value.size(-1);
  return a;
}

// Rows of queries, and columns of results, for each thread.
template <class T>
constexpr int kPerThread = std::is_same_v<T, double> ? 2 : 4;
template <class T>
constexpr int kWide = std::is_same_v<T, double> ? 4 : 8;

template <class T, class F>
void launch(F kernel, const Attention<T>& a, const AttentionResults<T>& to, int64_t rows, int side,
            int64_t columns, int wide, cudaStream_t stream) {
  const int64_t blocks = (rows + side - 1) / side;
  const int64_t parts = std::max<int64_t>(1, (columns + wide * kSide - 1) / (wide * kSide));
  check<ErrorKind::Runtime>(
      a.batches * blocks <= INT32_MAX && parts <= 65535, OpName("scaled_dot_product_attention"),
      "expected fewer blocks than 2^31 on cuda, got shape ", DimVector{a.batches, rows, columns});
  kernel<<<dim3(static_cast<unsigned>(a.batches * blocks), static_cast<unsigned>(parts)), kBlock, 0,
           stream>>>(a, to, blocks);
  check_launched();
}

template <class T>
bool by_tensor_cores(const Attention<T>& a) {
  return sizeof(T) == 2 && a.width <= kMaxTensorCoreWidth && a.value_width <= kMaxTensorCoreWidth;
}

// Narrow results need fewer registers.
template <class T, class F, class G>
auto fitting(int64_t columns, F wide, G narrow) {
  return columns > 64 ? std::pair(wide, kWide<T>) : std::pair(narrow, 4);
}

template <class T>
void attention_cuda(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                    double dropout_p, bool is_causal, double scale, int64_t seed, const Tensor& out,
                    const Tensor& logsumexp) {
  using C = Computed<T>;
  if (logsumexp.numel() == 0) return;
  const auto a = attention_of<T>(query, key, value, mask, dropout_p, is_causal, scale, seed);
  AttentionResults<T> to{};
  to.output = out.data_as<T>();
  to.logsumexp = logsumexp.data_as<C>();
  const Place place(query);
  if constexpr (sizeof(T) == 2)
    if (by_tensor_cores(a)) return attention_forward_by_tensor_cores(a, to, place.stream);
  constexpr int per = kPerThread<T>;
  const auto [kernel, wide] =
      fitting<T>(a.value_width, &forward_kernel<T, per, kWide<T>>, &forward_kernel<T, per, 4>);
  launch(kernel, a, to, a.length, per * kSide, a.value_width, wide, place.stream);
}

template <class T>
void attention_backward_cuda(const Tensor& grad, const Tensor& query, const Tensor& key,
                             const Tensor& value, const Tensor& mask, const Tensor& output,
                             const Tensor& logsumexp, double dropout_p, bool is_causal,
                             double scale, int64_t seed, const Tensor& grad_query,
                             const Tensor& grad_key, const Tensor& grad_value) {
  using C = Computed<T>;
  auto a = attention_of<T>(query, key, value, mask, dropout_p, is_causal, scale, seed);
  a.grad = view_of(grad);
  const Tensor y = aten::contiguous(output), total = aten::contiguous(logsumexp);
  const Tensor delta = empty_tensor({a.batches, a.length}, total.dtype(), query.device());
  const AttentionResults<T> to{nullptr,
                               total.data_as<C>(),
                               delta.data_as<C>(),
                               grad_query.data_as<T>(),
                               grad_key.data_as<T>(),
                               grad_value.data_as<T>()};
  const Place place(query);
  const int64_t rows = a.batches * a.length;
  if (rows > 0) {
    constexpr int64_t kTogether = kBlock / 32;
    delta_kernel<T><<<block_each((rows + kTogether - 1) / kTogether), kBlock, 0, place.stream>>>(
        a, y.data_as<T>(), delta.data_as<C>());
    check_launched();
  }
  if constexpr (sizeof(T) == 2)
    if (by_tensor_cores(a)) return attention_backward_by_tensor_cores(a, to, place.stream);
  constexpr int per = kPerThread<T>;
  if (grad_query.numel() > 0) {
    const auto [kernel, wide] = fitting<T>(a.width, &query_gradient_kernel<T, per, kWide<T>>,
                                           &query_gradient_kernel<T, per, 4>);
    launch(kernel, a, to, a.length, per * kSide, a.width, wide, place.stream);
  }
  if (grad_key.numel() > 0 || grad_value.numel() > 0) {
    const int64_t columns = std::max(a.width, a.value_width);
    const auto [kernel, wide] = fitting<T>(columns, &key_gradient_kernel<T, per, kWide<T>>,
                                           &key_gradient_kernel<T, per, 4>);
    launch(kernel, a, to, a.source, kKeys, columns, wide, place.stream);
  }
}

template <class T>
__global__ void dropout_mask_kernel(AttentionDropout<Computed<T>> dropout, int64_t n, int64_t keys,
                                    T* out) {
  for_each_element(n, [=](int64_t i) {
    out[i] = narrowed<T>(dropout.active ? dropout.kept(i / keys, keys, i % keys) : Computed<T>(1));
  });
}
template <class T>
void dropout_mask_cuda(const Tensor& scores, double dropout_p, int64_t seed, const Tensor& out) {
  const int64_t n = out.numel();
  if (n == 0) return;
  const Place place(out);
  dropout_mask_kernel<T><<<blocks_for(n), kBlock, 0, place.stream>>>(
      dropout_of<Computed<T>>(dropout_p, seed), n, scores.size(-1), out.data_as<T>());
  check_launched();
}

const auto forward_registered = register_cuda<aten::ops::_attention>(
    Floats(), []<class T>() { return &attention_cuda<T>; }, "attention_cuda");
const auto backward_registered = register_cuda<aten::ops::_attention_backward>(
    Floats(), []<class T>() { return &attention_backward_cuda<T>; }, "attention_backward_cuda");
const auto mask_registered = register_cuda<aten::ops::_attention_dropout_mask>(
    Floats(), []<class T>() { return &dropout_mask_cuda<T>; }, "attention_dropout_mask_cuda");

}  // namespace
}  // namespace treadle::cuda
