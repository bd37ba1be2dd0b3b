// embedding and the gradient of its weight.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/embedding.h"
#include "aten/backend/cpu/element_bits.h"
#include "aten/backend/cpu/long_sums.h"
#include "aten/ops/embedding_dense_backward.h"
#include "aten/ops/indexing/cpu/index_plan.h"

namespace treadle::cpu {
namespace {

template <class T>
void embedding_cpu(const Tensor& weight, const Tensor& indices, int64_t /*padding_idx*/,
                   bool /*scale_grad_by_freq*/, bool /*sparse*/, const Tensor& out) {
  using Element = bits_of<T>;
  const IndexPlan plan =
      dim_plan("embedding", weight, 0, indices, NegativeIndex::Refused, PlanFor::Reading, out);
  if (out.numel() > 0)
    read_plan(plan, static_cast<const Element*>(weight.data()), static_cast<Element*>(out.data()));
}

// The uses of each weight row in `indices`: positions[starts[row]] .. positions[starts[row + 1]],
// in order.
struct RowUses {
  std::vector<int64_t> starts, positions;
};

RowUses row_uses(const Offsets& indices, int64_t rows) {
  const int64_t count = indices.size();
  RowUses uses;
  uses.starts.assign(rows + 1, 0);
  for (int64_t i = 0; i < count; ++i) ++uses.starts[indices[i] + 1];
  for (int64_t r = 0; r < rows; ++r) uses.starts[r + 1] += uses.starts[r];
  uses.positions.resize(count);
  std::vector<int64_t> next(uses.starts.begin(), uses.starts.end() - 1);
  for (int64_t i = 0; i < count; ++i) uses.positions[next[indices[i]]++] = i;
  return uses;
}

// Each row of the weight sums its gradients in the order of `indices`. Rows run in parallel.
template <class T>
void embedding_dense_backward_cpu(const Tensor& grad_output, const Tensor& indices,
                                  int64_t num_weights, int64_t padding_idx, bool scale_grad_by_freq,
                                  const Tensor& out) {
  using C = compute_type<T>;
  const Offsets index = own_entries("embedding_dense_backward", indices, num_weights);
  const Tensor grad = apart_from(grad_output, out);
  const int64_t width = out.size(1);
  const int64_t count = index.size();
  const RowUses uses = row_uses(index, num_weights);
  const T* const from = grad.data_as<T>();
  T* const to = out.data_as<T>();
  const int64_t work = width * (1 + count / std::max<int64_t>(1, num_weights));
  parallel_for(num_weights, grain_for(work), [&](int64_t begin, int64_t end) {
    ColumnSums<C> sums(width);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t first = uses.starts[row];
      const int64_t last = row == padding_idx ? first : uses.starts[row + 1];
      for (int64_t u = first; u < last; ++u) {
        const T* g = from + uses.positions[u] * width;
        sums.add_row([&](C* sum) {
          for (int64_t k = 0; k < width; ++k) sum[k] += static_cast<C>(g[k]);
        });
      }
      T* const of_row = to + row * width;
      if (first == last) {
        std::fill_n(of_row, width, T(0));
      } else if (scale_grad_by_freq) {
        sums.take([of_row, uses_of_row = last - first](int64_t k, auto sum) {
          of_row[k] = static_cast<T>(static_cast<C>(sum / static_cast<decltype(sum)>(uses_of_row)));
        });
      } else {
        sums.take(
            [of_row](int64_t k, auto sum) { of_row[k] = static_cast<T>(static_cast<C>(sum)); });
      }
    }
  });
}

const auto embedding_registered = register_kernels<aten::ops::embedding, DeviceType::CPU>(
    []<class T>() { return &embedding_cpu<T>; }, "embedding_cpu");
const auto backward_registered =
    register_kernels<aten::ops::embedding_dense_backward, DeviceType::CPU>(
        []<class T>() { return &embedding_dense_backward_cpu<T>; }, "embedding_dense_backward_cpu");

}  // namespace
}  // namespace treadle::cpu
