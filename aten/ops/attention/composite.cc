// The public attention operators: they check arguments, broadcast them without copies, and call the
// kernel that works in blocks.
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "aten/ops/_attention.h"
#include "aten/ops/_attention_dropout_mask.h"
#include "aten/ops/_scaled_dot_product_flash_attention_for_cpu.h"
#include "aten/ops/add.h"
#include "aten/ops/all.h"
#include "aten/ops/attention/attention_weights.h"
#include "aten/ops/empty.h"
#include "aten/ops/eq.h"
#include "aten/ops/expand.h"
#include "aten/ops/flatten.h"
#include "aten/ops/item.h"
#include "aten/ops/logical_not.h"
#include "aten/ops/masked_fill.h"
#include "aten/ops/matmul.h"
#include "aten/ops/mul.h"
#include "aten/ops/ones.h"
#include "aten/ops/random_.h"
#include "aten/ops/scaled_dot_product_attention.h"
#include "aten/ops/softmax.h"
#include "aten/ops/transpose.h"
#include "aten/ops/tril.h"
#include "aten/ops/unflatten.h"
#include "aten/ops/unsqueeze.h"
#include "core/base/error.h"

namespace treadle::composite {
namespace {

constexpr const char* kName = "scaled_dot_product_attention";

// Number of the random bits of one call, from the default generator of its device.
int64_t draw_seed(const Tensor& query) {
  if (query.is_meta()) return 0;
  const NoGrad no_grad;
  const Tensor seed = empty_cpu({}, ScalarType::Int64);
  if (query.is_cpu()) return aten::item(aten::random_(seed)).to<int64_t>();
  // Drawn on the CPU, from where the device's numbers are.
  const Generator own = default_generator(query.device()), lent = make_generator(kCPU);
  lent->set_position(own->position());
  aten::random_(seed, lent);
  own->set_position(lent->position());
  return aten::item(seed).to<int64_t>();
}

DimVector leading(const Tensor& t) {
  return DimVector(t.sizes().slice(0, static_cast<size_t>(t.dim() - 2)));
}

// Sizes that both lists of leading dimensions broadcast to.
DimVector broadcast(const DimVector& a, const DimVector& b, const Tensor& query,
                    const Tensor& other) {
  std::optional<DimVector> sizes = broadcast_shape(a, b);
  check<ErrorKind::Runtime>(sizes.has_value(), OpName(kName),
                            "expected leading dimensions that broadcast together, got shapes ",
                            query.sizes(), " and ", other.sizes());
  return *std::move(sizes);
}

Tensor with_leading(const Tensor& t, const DimVector& batch) {
  DimVector sizes(batch);
  sizes.push_back(t.size(-2));
  sizes.push_back(t.size(-1));
  return t.sizes() == IntList(sizes) ? t : aten::expand(t, sizes);
}

// The heads (dimension -3) of query in groups that share one head of key: (..., H, L, E) as
// (..., H / g, g, L, E), and a dimension of 1 for the group in key and value. No copies.
Tensor grouped(const Tensor& t, int64_t heads, int64_t groups) {
  return aten::unflatten(t, -3, {heads, groups});
}

}  // namespace

Tensor attention_weights(const Tensor& query, const Tensor& key, const Tensor& mask, bool is_causal,
                         double scale) {
  constexpr double kMasked = -std::numeric_limits<double>::infinity();
  Tensor scores = aten::mul(aten::matmul(query, aten::transpose(key, -2, -1)), Scalar(scale));
  if (is_causal) {
    const Tensor seen = aten::tril(
        aten::ones({query.size(-2), key.size(-2)}, ScalarType::Bool, std::nullopt, query.device()));
    scores = aten::masked_fill(scores, aten::logical_not(seen), Scalar(kMasked));
  }
  if (mask.defined()) {
    scores = mask.dtype() == ScalarType::Bool
                 ? aten::masked_fill(scores, aten::logical_not(mask), Scalar(kMasked))
                 : aten::add(scores, mask);
  }
  const int64_t last = -1;
  const Tensor none =
      aten::all(aten::eq(scores, Scalar(kMasked)), last, true);  // rows without a key
  const Tensor p = aten::softmax(aten::masked_fill(scores, none, Scalar(0)), -1);
  return aten::masked_fill(p, none, Scalar(0));
}

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask, double dropout_p, bool is_causal,
                                    std::optional<double> scale, bool enable_gqa) {
  for (const Tensor* t : {&query, &key, &value}) {
    check<ErrorKind::Runtime>(
        t->dim() >= 2, OpName(kName),
        "expected query, key and value with at least 2 dimensions, got shapes ", query.sizes(),
        ", ", key.sizes(), " and ", value.sizes());
    check<ErrorKind::Runtime>(t->dtype() == query.dtype() && t->is_floating_point(), OpName(kName),
                              "expected query, key and value of one floating dtype, got ",
                              query.dtype(), ", ", key.dtype(), " and ", value.dtype());
  }
  check<ErrorKind::Runtime>(key.size(-1) == query.size(-1) && value.size(-2) == key.size(-2),
                            OpName(kName),
                            "expected query (..., L, E), key (..., S, E) and value (..., S, Ev), "
                            "got shapes ",
                            query.sizes(), ", ", key.sizes(), " and ", value.sizes());
  check<ErrorKind::Runtime>(!(is_causal && attn_mask.defined()), OpName(kName),
                            "expected attn_mask = None with is_causal = True, got a mask of shape ",
                            attn_mask.defined() ? attn_mask.sizes() : IntList());
  const double factor =
      scale.value_or(1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, query.size(-1)))));

  Tensor q = query, k = key, v = value, mask = attn_mask;
  if (mask.defined()) {
    check<ErrorKind::Runtime>(mask.dtype() == ScalarType::Bool || mask.dtype() == query.dtype(),
                              OpName(kName),
                              "expected attn_mask of dtype bool or of the query's dtype ",
                              query.dtype(), ", got ", mask.dtype());
    while (mask.dim() < 2) mask = aten::unsqueeze(mask, 0);
    const int64_t length = query.size(-2), source = key.size(-2);
    check<ErrorKind::Runtime>((mask.size(-2) == length || mask.size(-2) == 1) &&
                                  (mask.size(-1) == source || mask.size(-1) == 1),
                              OpName(kName), "expected attn_mask that broadcasts to (..., ", length,
                              ", ", source, "), got shape ", attn_mask.sizes());
    DimVector sizes = leading(mask);
    sizes.push_back(length);
    sizes.push_back(source);
    mask = aten::expand(mask, sizes);
  }
  bool regroup = false;
  if (enable_gqa) {
    check<ErrorKind::Runtime>(q.dim() >= 3 && k.dim() >= 3 && v.dim() >= 3, OpName(kName),
                              "expected query, key and value with at least 3 dimensions for "
                              "enable_gqa = True, got shapes ",
                              query.sizes(), ", ", key.sizes(), " and ", value.sizes());
    const int64_t heads = q.size(-3), shared = k.size(-3);
    check<ErrorKind::Runtime>(shared > 0 && shared == v.size(-3) && heads % shared == 0,
                              OpName(kName),
                              "expected heads of query to be a multiple of those of key and value "
                              "for enable_gqa = True, got ",
                              heads, ", ", shared, " and ", v.size(-3));
    if (heads != shared) {
      regroup = true;
      const int64_t groups = heads / shared;
      q = grouped(q, shared, groups);
      k = aten::unsqueeze(k, -3);
      v = aten::unsqueeze(v, -3);
      if (mask.defined() && mask.dim() >= 3) {
        check<ErrorKind::Runtime>(mask.size(-3) == heads || mask.size(-3) == 1, OpName(kName),
                                  "expected attn_mask that broadcasts to ", heads,
                                  " heads, got shape ", attn_mask.sizes());
        mask = mask.size(-3) == 1 ? aten::unsqueeze(mask, -3) : grouped(mask, shared, groups);
      }
    }
  }
  DimVector batch = broadcast(leading(q), leading(k), query, key);
  batch = broadcast(batch, leading(v), query, value);
  if (mask.defined()) {
    const DimVector with_mask = broadcast(batch, leading(mask), query, attn_mask);
    check<ErrorKind::Runtime>(with_mask == batch, OpName(kName),
                              "expected attn_mask that broadcasts to the leading dimensions of "
                              "query, got shapes ",
                              attn_mask.sizes(), " and ", query.sizes());
    mask = with_leading(mask, batch);
  }
  q = with_leading(q, batch);
  k = with_leading(k, batch);
  v = with_leading(v, batch);
  const int64_t seed = dropout_p > 0 ? draw_seed(query) : 0;

  Tensor out;
  if (mask.defined() && mask.requires_grad() && grad_enabled()) {
    // The mask's gradient is as large as the matrix of scores.
    Tensor p = attention_weights(q, k, mask, is_causal, factor);
    if (dropout_p > 0) p = aten::mul(p, aten::_attention_dropout_mask(p, dropout_p, seed));
    out = aten::matmul(p, v);
  } else {
    out = std::get<0>(aten::_attention(q, k, v, mask, dropout_p, is_causal, factor, seed));
  }
  return regroup ? aten::flatten(out, -4, -3) : out;
}

std::tuple<Tensor, Tensor> flash_attention_for_cpu(const Tensor& query, const Tensor& key,
                                                   const Tensor& value, double dropout_p,
                                                   bool is_causal, const Tensor& attn_mask,
                                                   std::optional<double> scale) {
  const char* const op = "_scaled_dot_product_flash_attention_for_cpu";
  check<ErrorKind::Runtime>(query.dim() == 4 && key.dim() == 4 && value.dim() == 4, OpName(op),
                            "expected query, key and value of 4 dimensions, got shapes ",
                            query.sizes(), ", ", key.sizes(), " and ", value.sizes());
  const double factor =
      scale.value_or(1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, query.size(-1)))));
  Tensor mask = attn_mask;
  if (mask.defined()) {
    const int64_t sizes[] = {query.size(0), query.size(1), query.size(2), key.size(2)};
    mask = aten::expand(mask, IntList(sizes, 4));
  }
  const int64_t seed = dropout_p > 0 ? draw_seed(query) : 0;
  return aten::_attention(query, key, value, mask, dropout_p, is_causal, factor, seed);
}

}  // namespace treadle::composite
