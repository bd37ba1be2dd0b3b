// Attention in blocks: softmax(scale * Q K^T + mask) V and its gradients, without ever holding the
// matrix of scores.
//
// Forward (Milakov & Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al.,
// "FlashAttention", 2022): a block of rows processes the keys kKeys at a time, with a
// running maximum m, sum l and output o. When a block raises the maximum, l and o are scaled down
// by exp(old m - new m). Backward receives logsumexp = m + log(l) for each row, from which any
// block of probabilities is exp(score - logsumexp).
//
// Backward, with P the probabilities and delta = rowsum(grad * output):
//   dV = P^T grad,  dS = P * (grad V^T - delta),  dQ = scale * dS K,  dK = scale * dS^T Q.
//
// Dropout keeps the probability of query i for key j by a bit that depends only on the call's seed,
// i and j, so backward recomputes the same bits. A row whose keys are all masked gives zeros.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "aten/backend/cpu/gemm.h"
#include "aten/backend/cpu/long_sums.h"
#include "aten/ops/_attention.h"
#include "aten/ops/_attention_backward.h"
#include "aten/ops/_attention_dropout_mask.h"
#include "aten/ops/attention/cpu/row_loops.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/random/cpu/random_blocks.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

constexpr int64_t kKeys = 256;

// The rows of a block. A block of keys is rearranged for each block of rows, which takes long where
// rows are wide.
constexpr int64_t query_rows(int64_t width) { return width > 64 ? 256 : 64; }

// The leading dimensions as one, and where each of them starts in a tensor of any strides.
struct Batches {
  IntList sizes;
  int64_t count = 1;
  explicit Batches(const Tensor& query)
      : sizes(query.sizes().slice(0, static_cast<size_t>(query.dim() - 2))) {
    count = product(sizes);
  }
  int64_t offset(const Tensor& t, int64_t batch) const {
    return offset_at(sizes, t.strides(), batch);
  }
};

// Dropout: the probabilities that a call keeps, and their factor.
struct Dropout {
  double p;
  uint64_t seed;
  bool active() const { return p > 0; }
  double factor() const { return p < 1 ? 1 / (1 - p) : 0; }
  // Multiplies row `row` of `rows` that has `keys` keys by 0 or the factor, from key k0 on, which
  // is a multiple of 4.
  template <class C>
  void apply(C* x, int64_t row, int64_t keys, int64_t k0, int64_t count) const {
    if (p >= 1) {
      std::fill_n(x, count, C(0));
      return;
    }
    const uint64_t per_row = static_cast<uint64_t>((keys + 3) / 4);
    const auto threshold = static_cast<uint32_t>(std::min(p * 0x1p32, 0x1p32 - 1));
    const C scale = static_cast<C>(factor());
    alignas(64) uint32_t words[4 * (kKeys / 4 + simd::kRandomStep)];
    const uint64_t first = static_cast<uint64_t>(row) * per_row + static_cast<uint64_t>(k0 / 4);
    simd::random_bits(seed, first, 0, (count + 3) / 4, words);
    for (int64_t j = 0; j < count; ++j) x[j] = words[j] >= threshold ? x[j] * scale : C(0);
  }
};

// A part of a matrix of T as BLAS takes it: where it lies, or converted into `room`.
template <class T>
using Room = std::vector<compute_type<T>>;
template <class T>
MatrixView<compute_type<T>> matrix(const T* data, int64_t rows, int64_t cols, int64_t row_stride,
                                   int64_t col_stride, Room<T>& room) {
  if constexpr (std::is_same_v<T, compute_type<T>>) {
    return {data, rows, cols, row_stride, col_stride};
  } else {
    room.resize(static_cast<size_t>(rows * cols));
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < cols; ++j)
        room[i * cols + j] = static_cast<float>(data[i * row_stride + j * col_stride]);
    }
    return {room.data(), rows, cols, cols, 1};
  }
}
template <class C>
MatrixView<C> transposed(const MatrixView<C>& m) {
  return {m.data, m.cols, m.rows, m.col_stride, m.row_stride};
}

// The common state of forward and backward: the tensors, and blocks of scores.
template <class T>
struct Attention {
  using C = compute_type<T>;
  const Tensor &query, &key, &value, &mask;
  bool causal;
  double scale;
  Dropout dropout;
  Batches batches;
  int64_t length, source, width, value_width;
  int64_t block;  // rows of a block of scores
  int64_t pitch;  // the distance from one of them to the next

  Attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
            double dropout_p, bool causal, double scale, int64_t seed)
      : query(query),
        key(key),
        value(value),
        mask(mask),
        causal(causal),
        scale(scale),
        dropout{dropout_p, static_cast<uint64_t>(seed)},
        batches(query),
        length(query.size(-2)),
        source(key.size(-2)),
        width(query.size(-1)),
        value_width(value.size(-1)),
        block(query_rows(width)),
        pitch(std::min(kKeys, source)) {}

  int64_t query_blocks() const { return (length + block - 1) / block; }
  int64_t key_blocks() const { return (source + kKeys - 1) / kKeys; }
  // Keys that rows below q1 may look at.
  int64_t keys_for(int64_t q1) const { return causal ? std::min(source, q1) : source; }

  MatrixView<C> rows(const Tensor& t, int64_t batch, int64_t begin, int64_t end,
                     Room<T>& room) const {
    const int64_t d = t.dim();
    return matrix<T>(t.data_as<T>() + batches.offset(t, batch) + begin * t.strides()[d - 2],
                     end - begin, t.sizes()[d - 1], t.strides()[d - 2], t.strides()[d - 1], room);
  }

  size_t block_size() const { return static_cast<size_t>(std::min(block, length) * pitch); }

  // s (q1 - q0 rows, leading dimension pitch) = scale * q k^T + mask; -inf where a key is masked.
  void scores(const MatrixView<C>& q, const MatrixView<C>& k, int64_t batch, int64_t q0, int64_t q1,
              int64_t k0, int64_t k1, C* s) const {
    constexpr C kMasked = -std::numeric_limits<C>::infinity();
    gemm<C>(q, transposed(k), s, pitch, static_cast<C>(scale), C(0));
    if (mask.defined()) {
      const int64_t d = mask.dim(), rs = mask.strides()[d - 2], cs = mask.strides()[d - 1];
      const int64_t at = batches.offset(mask, batch) + q0 * rs + k0 * cs;
      for (int64_t i = 0; i < q1 - q0; ++i) {
        C* row = s + i * pitch;
        if (mask.dtype() == ScalarType::Bool) {
          const bool* m = mask.data_as<bool>() + at + i * rs;
          for (int64_t j = 0; j < k1 - k0; ++j)
            row[j] = element_value(m[j * cs]) ? row[j] : kMasked;
        } else {
          const T* m = mask.data_as<T>() + at + i * rs;
          for (int64_t j = 0; j < k1 - k0; ++j) row[j] += static_cast<C>(m[j * cs]);
        }
      }
    }
    if (causal && k1 > q0 + 1) {
      for (int64_t i = 0; i < q1 - q0; ++i) {
        C* row = s + i * pitch;
        for (int64_t j = std::max<int64_t>(0, q0 + i + 1 - k0); j < k1 - k0; ++j) row[j] = kMasked;
      }
    }
  }
};

// y = x / by. The quotient of doubles, rounded to C, would be the same.
template <class C, class T>
void divide(const C* x, C by, T* y, int64_t n) {
  if constexpr (std::is_same_v<C, T>)
    row_loops<C>().divide(x, by, y, n);
  else
    for (int64_t e = 0; e < n; ++e) y[e] = static_cast<T>(x[e] / by);
}

template <class T>
void attention_cpu(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                   double dropout_p, bool is_causal, double scale, int64_t seed, const Tensor& out,
                   const Tensor& logsumexp) {
  using C = compute_type<T>;
  using W = wide_type<C>;
  const Attention<T> a(query, key, value, mask, dropout_p, is_causal, scale, seed);
  const int64_t blocks = a.query_blocks(), width = a.value_width;
  parallel_chunks(a.batches.count * blocks, [&](int64_t chunk) {
    const int64_t batch = chunk / blocks, q0 = chunk % blocks * a.block;
    const int64_t q1 = std::min(a.length, q0 + a.block), rows = q1 - q0;
    Room<T> q_room, k_room, v_room;
    // Each block of keys has its sums in C. The sums over several blocks are wider.
    const bool several = a.keys_for(q1) > kKeys;
    std::vector<C> s(a.block_size()), part(static_cast<size_t>(rows * width));
    std::vector<W> o(several ? part.size() : 0, W(0));
    std::vector<C> most(static_cast<size_t>(rows), -std::numeric_limits<C>::infinity());
    std::vector<W> total(static_cast<size_t>(rows), W(0));
    const auto q = a.rows(query, batch, q0, q1, q_room);
    for (int64_t k0 = 0; k0 < a.keys_for(q1); k0 += kKeys) {
      const int64_t k1 = std::min(a.keys_for(q1), k0 + kKeys);
      a.scores(q, a.rows(key, batch, k0, k1, k_room), batch, q0, q1, k0, k1, s.data());
      for (int64_t i = 0; i < rows; ++i) {
        C* row = s.data() + i * a.pitch;
        const C before = most[i], now = std::max(before, row_loops<C>().largest(row, k1 - k0));
        if (std::isinf(now) && now < 0) {  // nothing but masked keys, or NaN
          total[i] += row_loops<C>().exp_shifted(row, k1 - k0, C(0));
        } else {
          const C shrink = std::exp(before - now);
          total[i] = total[i] * shrink + row_loops<C>().exp_shifted(row, k1 - k0, now);
          for (int64_t e = 0; several && e < width; ++e) o[i * width + e] *= shrink;
          most[i] = now;
        }
        if (a.dropout.active())
          a.dropout.apply(row, batch * a.length + q0 + i, a.source, k0, k1 - k0);
      }
      gemm<C>({s.data(), rows, k1 - k0, a.pitch, 1}, a.rows(value, batch, k0, k1, v_room),
              part.data(), width, C(1), C(0));
      for (size_t i = 0; i < o.size(); ++i) o[i] += static_cast<W>(part[i]);
    }
    T* y = out.data_as<T>() + (batch * a.length + q0) * width;
    C* lse = logsumexp.data_as<C>() + batch * a.length + q0;
    for (int64_t i = 0; i < rows; ++i) {
      const bool none = total[i] == W(0);
      lse[i] =
          none ? -std::numeric_limits<C>::infinity() : static_cast<C>(most[i] + std::log(total[i]));
      if (none)
        std::fill_n(y + i * width, width, T(0));
      else if (several)
        for (int64_t e = 0; e < width; ++e)
          y[i * width + e] = static_cast<T>(static_cast<C>(o[i * width + e] / total[i]));
      else
        divide(part.data() + i * width, static_cast<C>(total[i]), y + i * width, width);
    }
  });
}

// Sums over blocks: kSumRun of them are added in C, and all of those in a wider type.
template <class C>
class BlockSums {
  using W = wide_type<C>;

 public:
  explicit BlockSums(int64_t size) : run_(static_cast<size_t>(size), C(0)) {}
  // The sums so far, to which the next block adds.
  C* next() {
    if (blocks_++ == kSumRun) {
      if (total_.empty()) total_.assign(run_.size(), W(0));
      for (size_t i = 0; i < run_.size(); ++i) total_[i] += static_cast<W>(run_[i]);
      std::fill(run_.begin(), run_.end(), C(0));
      blocks_ = 1;
    }
    return run_.data();
  }
  size_t size() const { return run_.size(); }
  W sum(size_t i) const { return static_cast<W>(run_[i]) + (total_.empty() ? W(0) : total_[i]); }

 private:
  std::vector<C> run_;
  std::vector<W> total_;
  int64_t blocks_ = 0;
};

// One block of backward: probabilities (after dropout) in p, dS in ds.
template <class T>
struct BackwardBlock {
  using C = compute_type<T>;
  const Attention<T>& a;
  const Tensor &grad, &output, &logsumexp;
  Room<T> q_room = {}, k_room = {}, v_room = {}, g_room = {};
  std::vector<C> p = std::vector<C>(a.block_size());
  std::vector<C> ds = std::vector<C>(a.block_size());
  std::vector<C> keep = std::vector<C>(static_cast<size_t>(a.pitch));

  // Adds to those of dq, dk, dv that are given. Each begins with the first row of its block.
  void run(int64_t batch, int64_t q0, int64_t q1, int64_t k0, int64_t k1, C* dq, C* dk, C* dv) {
    const int64_t rows = q1 - q0, keys = k1 - k0;
    const auto q = a.rows(a.query, batch, q0, q1, q_room);
    const auto k = a.rows(a.key, batch, k0, k1, k_room);
    const auto v = a.rows(a.value, batch, k0, k1, v_room);
    const auto g = a.rows(grad, batch, q0, q1, g_room);
    a.scores(q, k, batch, q0, q1, k0, k1, p.data());
    gemm<C>(g, transposed(v), ds.data(), a.pitch, C(1), C(0));
    const C* lse = logsumexp.data_as<C>() + batch * a.length + q0;
    const T* y = output.data_as<T>() + (batch * a.length + q0) * a.value_width;
    for (int64_t i = 0; i < rows; ++i) {
      C *prow = p.data() + i * a.pitch, *srow = ds.data() + i * a.pitch;
      if (std::isinf(lse[i]) && lse[i] < 0) {
        std::fill_n(prow, keys, C(0));
        std::fill_n(srow, keys, C(0));
        continue;
      }
      row_loops<C>().exp_shifted(prow, keys, lse[i]);
      C delta = 0;
      for (int64_t e = 0; e < a.value_width; ++e)
        delta +=
            g.data[i * g.row_stride + e * g.col_stride] * static_cast<C>(y[i * a.value_width + e]);
      if (a.dropout.active()) {
        std::fill_n(keep.data(), keys, C(1));
        a.dropout.apply(keep.data(), batch * a.length + q0 + i, a.source, k0, keys);
        for (int64_t j = 0; j < keys; ++j) {
          srow[j] = prow[j] * (srow[j] * keep[j] - delta);
          prow[j] *= keep[j];
        }
      } else {
        for (int64_t j = 0; j < keys; ++j) srow[j] = prow[j] * (srow[j] - delta);
      }
    }
    const MatrixView<C> probabilities{p.data(), rows, keys, a.pitch, 1};
    const MatrixView<C> d_scores{ds.data(), rows, keys, a.pitch, 1};
    const C scale = static_cast<C>(a.scale);
    if (dq) gemm<C>(d_scores, k, dq, a.width, scale, C(1));
    if (dk) gemm<C>(transposed(d_scores), q, dk, a.width, scale, C(1));
    if (dv) gemm<C>(transposed(probabilities), g, dv, a.value_width, C(1), C(1));
  }
};

template <class T>
void attention_backward_cpu(const Tensor& grad, const Tensor& query, const Tensor& key,
                            const Tensor& value, const Tensor& mask, const Tensor& output,
                            const Tensor& logsumexp, double dropout_p, bool is_causal, double scale,
                            int64_t seed, const Tensor& grad_query, const Tensor& grad_key,
                            const Tensor& grad_value) {
  using C = compute_type<T>;
  const Attention<T> a(query, key, value, mask, dropout_p, is_causal, scale, seed);
  const Tensor out = aten::contiguous(output), lse = aten::contiguous(logsumexp);
  const auto put = [](const BlockSums<C>& from, const Tensor& to, int64_t first) {
    T* at = to.data_as<T>() + first;
    for (size_t i = 0; i < from.size(); ++i) at[i] = static_cast<T>(static_cast<C>(from.sum(i)));
  };
  // dK and dV of one block of keys; with `dq` (of the whole batch) that as well.
  const auto key_block = [&](BackwardBlock<T>& block, int64_t batch, int64_t k0, C* dq) {
    const int64_t k1 = std::min(a.source, k0 + kKeys);
    BlockSums<C> dk((k1 - k0) * a.width), dv((k1 - k0) * a.value_width);
    const int64_t first =
        a.causal ? k0 / a.block * a.block : 0;  // earlier rows do not see the block
    for (int64_t q0 = first; q0 < a.length; q0 += a.block) {
      const int64_t q1 = std::min(a.length, q0 + a.block);
      block.run(batch, q0, q1, k0, k1, dq ? dq + q0 * a.width : nullptr, dk.next(), dv.next());
    }
    put(dk, grad_key, (batch * a.source + k0) * a.width);
    put(dv, grad_value, (batch * a.source + k0) * a.value_width);
  };
  // Each thread takes whole batches where there are enough. Otherwise the queries' gradient is
  // computed apart, so that the scores are computed twice. The sums, and so the bits, are the same.
  if (a.batches.count >= num_threads()) {
    parallel_chunks(a.batches.count, [&](int64_t batch) {
      BackwardBlock<T> block{a, grad, out, lse};
      BlockSums<C> dq(a.length * a.width);
      for (int64_t k0 = 0; k0 < a.source; k0 += kKeys) key_block(block, batch, k0, dq.next());
      put(dq, grad_query, batch * a.length * a.width);
    });
    return;
  }
  const int64_t q_blocks = a.query_blocks(), k_blocks = a.key_blocks();
  parallel_chunks(a.batches.count * q_blocks, [&](int64_t chunk) {
    BackwardBlock<T> block{a, grad, out, lse};
    const int64_t batch = chunk / q_blocks, q0 = chunk % q_blocks * a.block;
    const int64_t q1 = std::min(a.length, q0 + a.block);
    BlockSums<C> dq((q1 - q0) * a.width);
    for (int64_t k0 = 0; k0 < a.keys_for(q1); k0 += kKeys)
      block.run(batch, q0, q1, k0, std::min(a.source, k0 + kKeys), dq.next(), nullptr, nullptr);
    put(dq, grad_query, (batch * a.length + q0) * a.width);
  });
  parallel_chunks(a.batches.count * k_blocks, [&](int64_t chunk) {
    BackwardBlock<T> block{a, grad, out, lse};
    key_block(block, chunk / k_blocks, chunk % k_blocks * kKeys, nullptr);
  });
}

template <class T>
void attention_dropout_mask_cpu(const Tensor& scores, double dropout_p, int64_t seed,
                                const Tensor& out) {
  const Dropout dropout{dropout_p, static_cast<uint64_t>(seed)};
  const int64_t keys = scores.size(-1), rows = keys == 0 ? 0 : scores.numel() / keys;
  parallel_for(rows, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, keys)),
               [&](int64_t begin, int64_t end) {
                 std::vector<compute_type<T>> keep(static_cast<size_t>(kKeys));
                 for (int64_t row = begin; row < end; ++row) {
                   for (int64_t k0 = 0; k0 < keys; k0 += kKeys) {
                     const int64_t count = std::min(kKeys, keys - k0);
                     std::fill_n(keep.data(), count, compute_type<T>(1));
                     if (dropout.active()) dropout.apply(keep.data(), row, keys, k0, count);
                     for (int64_t j = 0; j < count; ++j)
                       out.data_as<T>()[row * keys + k0 + j] = static_cast<T>(keep[j]);
                   }
                 }
               });
}

const auto forward_registered = register_kernels<aten::ops::_attention, DeviceType::CPU>(
    []<class T>() { return &attention_cpu<T>; }, "attention_cpu");
const auto backward_registered = register_kernels<aten::ops::_attention_backward, DeviceType::CPU>(
    []<class T>() { return &attention_backward_cpu<T>; }, "attention_backward_cpu");
const auto mask_registered = register_kernels<aten::ops::_attention_dropout_mask, DeviceType::CPU>(
    []<class T>() { return &attention_dropout_mask_cpu<T>; }, "attention_dropout_mask_cpu");

}  // namespace
}  // namespace treadle::cpu
