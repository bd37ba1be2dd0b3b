// Common parts of the attention kernels: a call's tensors as matrices of each batch, the keys that
// a query sees, and the probabilities that dropout keeps.
//
// The algorithm is that of the CPU's kernel (aten/ops/attention/cpu/attention.cc): blocks of
// queries against blocks of keys, with running maxima and sums. Backward recomputes the
// probabilities from logsumexp. One block of threads sums over keys (or queries) in order: the same
// bits each run.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/random/cuda/philox.cuh"

namespace treadle::cuda {

constexpr int kMaxLeading = 14;  // dimensions before a matrix's two

// The address of a tensor, and its strides in elements.
struct View {
  const void* data = nullptr;
  int64_t leading[kMaxLeading] = {}, row = 0, column = 0;
};

// One matrix of a view.
template <class T>
struct Matrix {
  const T* data;
  int64_t row, column;
  __device__ T at(int64_t i, int64_t j) const { return data[i * row + j * column]; }
};

struct LargerNumber {  // NaN left out
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a > b || b != b ? a : b;
  }
};

enum class Mask : int { None, Bool, Added };

template <class C>
struct AttentionDropout {
  bool active, all;    // all: nothing is kept
  uint32_t threshold;  // words below it are dropped
  C factor;
  uint64_t seed;
  // The factors of the probabilities of a key; in `pair`, of an even key and the next one.
  __device__ C kept(int64_t row, int64_t keys, int64_t key) const {
    C first, second;
    pair(row, keys, key / 2 * 2, first, second);
    return key % 2 == 0 ? first : second;
  }
  __device__ void pair(int64_t row, int64_t keys, int64_t key, C& first, C& second) const {
    const uint4 words = philox(seed, static_cast<uint64_t>(row * ((keys + 3) / 4) + key / 4));
    first = factor_of(key % 4 == 0 ? words.x : words.z);
    second = factor_of(key % 4 == 0 ? words.y : words.w);
  }

 private:
  __device__ C factor_of(uint32_t word) const { return !all && word >= threshold ? factor : C(0); }
};

// query (..., length, width), key (..., source, width), value (..., source, value_width), mask
// (..., length, source), and in backward grad (..., length, value_width), each with `batches`
// batches.
template <class T>
struct Attention {
  using C = Computed<T>;
  int dims;  // leading ones
  int64_t sizes[kMaxLeading];
  View query, key, value, mask, grad;
  Mask mask_kind;
  bool causal;
  C scale;
  AttentionDropout<C> dropout;
  int64_t batches, length, source, width, value_width;

  __device__ int64_t offset(const View& view, int64_t batch) const {
    int64_t at = 0;
    for (int d = dims - 1; d >= 0; --d) {
      at += batch % sizes[d] * view.leading[d];
      batch /= sizes[d];
    }
    return at;
  }
  __device__ Matrix<T> matrix(const View& view, int64_t batch) const {
    return {static_cast<const T*>(view.data) + offset(view, batch), view.row, view.column};
  }
  // The keys that queries below `end` may see.
  __device__ int64_t keys_for(int64_t end) const { return causal && end < source ? end : source; }
  // The score of a query for a key, from their product; -inf if the query does not see the key.
  // `mask_at` is the batch's offset in the mask.
  __device__ C score(C product, int64_t mask_at, int64_t i, int64_t j) const {
    constexpr C kUnseen = -INFINITY;
    if (i >= length || j >= source || (causal && j > i)) return kUnseen;
    const C s = product * scale;
    if (mask_kind == Mask::None) return s;
    const int64_t at = mask_at + i * mask.row + j * mask.column;
    if (mask_kind == Mask::Bool)
      return element_value(static_cast<const bool*>(mask.data)[at]) ? s : kUnseen;
    return s + widened(static_cast<const T*>(mask.data)[at]);
  }
};

// The destinations of results, contiguous: those of forward, or those of backward. Backward reads
// forward's logsumexp, and delta: for each query the sum of grad * output.
template <class T>
struct AttentionResults {
  using C = Computed<T>;
  T* output;
  C* logsumexp;
  const C* delta;
  T *grad_query, *grad_key, *grad_value;
};

// For 16-bit numbers and widths up to kMaxTensorCoreWidth: products on tensor cores, of 16-bit
// factors (probabilities are rounded to them), with sums in float32.
constexpr int64_t kMaxTensorCoreWidth = 128;
template <class T>
void attention_forward_by_tensor_cores(const Attention<T>& a, const AttentionResults<T>& to,
                                       cudaStream_t stream);
template <class T>
void attention_backward_by_tensor_cores(const Attention<T>& a, const AttentionResults<T>& to,
                                        cudaStream_t stream);

}  // namespace treadle::cuda
