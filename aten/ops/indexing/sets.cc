// Indexing composed of other indexing: nonzero_static, index_reduce, combinations, vander.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "aten/engine/named_errors.h"
#include "aten/engine/renamed_errors.h"
#include "aten/ops/cat.h"
#include "aten/ops/combinations.h"
#include "aten/ops/cumprod.h"
#include "aten/ops/expand.h"
#include "aten/ops/flip.h"
#include "aten/ops/index_reduce.h"
#include "aten/ops/index_select.h"
#include "aten/ops/narrow.h"
#include "aten/ops/new_empty.h"
#include "aten/ops/new_full.h"
#include "aten/ops/new_ones.h"
#include "aten/ops/nonzero.h"
#include "aten/ops/nonzero_static.h"
#include "aten/ops/reshape.h"
#include "aten/ops/scatter_reduce.h"
#include "aten/ops/to.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/vander.h"

namespace treadle::composite {
namespace {

// n choose r, or -1 if it is above 2^62.
int64_t binomial_coefficient(int64_t n, int64_t r) {
  if (r > n) return 0;
  r = std::min(r, n - r);
  __int128 count = 1;
  for (int64_t k = 1; k <= r; ++k) {
    count = count * (n - r + k) / k;
    if (count > (int64_t{1} << 62)) return -1;
  }
  return static_cast<int64_t>(count);
}

// Writes all rows of r ascending numbers below n, equal ones included if `repeated`.
void write_combinations(int64_t n, int64_t r, int64_t rows, bool repeated, int64_t* out) {
  for (int64_t k = 0; k < r && rows > 0; ++k) out[k] = repeated ? 0 : k;
  for (int64_t row = 1; row < rows; ++row) {
    const int64_t* const last = out + (row - 1) * r;
    int64_t* const next = out + row * r;
    // The last position that is not at its end goes up by one, and those after it start from there.
    int64_t at = r - 1;
    while (last[at] == (repeated ? n - 1 : n - r + at)) --at;
    std::copy(last, last + at, next);
    for (int64_t k = at; k < r; ++k) next[k] = last[at] + 1 + (repeated ? 0 : k - at);
  }
}

}  // namespace

Tensor nonzero_static(const Tensor& self, int64_t size, int64_t fill_value) {
  if (self.is_meta()) return aten::new_empty(self, {size, self.dim()}, ScalarType::Int64);
  const Tensor found = aten::nonzero(self);
  const int64_t count = found.size(0);
  if (count >= size) return aten::narrow(found, 0, 0, size);
  return aten::cat({found, aten::new_full(found, {size - count, self.dim()}, Scalar(fill_value))});
}

Tensor index_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                    std::string_view reduce, bool include_self) {
  const int64_t d = wrap_dim("index_reduce", dim, self.dim());
  check<ErrorKind::Index>(index.dtype() == ScalarType::Int64 || index.dtype() == ScalarType::Int32,
                          OpName("index_reduce"), "expected index of dtype int64 or int32, got ",
                          index.dtype());
  DimVector expected(self.sizes());
  if (self.dim() > 0) expected[d] = index.numel();
  check<ErrorKind::Index>(
      source.sizes() == IntList(expected) && (self.dim() > 0 || index.numel() == 1),
      OpName("index_reduce"), "expected source of shape ", expected, " for index of length ",
      index.numel(), ", got ", source.sizes());
  check<ErrorKind::Runtime>(source.dtype() == self.dtype(), OpName("index_reduce"),
                            "expected source of self's dtype ", self.dtype(), ", got ",
                            source.dtype());
  DimVector along(static_cast<size_t>(self.dim()), 1);
  if (self.dim() > 0) along[d] = index.numel();
  const Tensor places = aten::expand(aten::reshape(index, along), expected);
  return renamed("index_reduce", "scatter_reduce", [&] {
    return aten::scatter_reduce(self, d, places, source, reduce, include_self);
  });
}

Tensor combinations(const Tensor& self, int64_t r, bool with_replacement) {
  const int64_t n = self.numel();
  if (r == 0) return aten::new_empty(self, {0});
  int64_t pool = n;
  const bool fits = !with_replacement || n == 0 || !__builtin_add_overflow(n - 1, r, &pool);
  const int64_t rows = !fits ? -1 : with_replacement && n == 0 ? 0 : binomial_coefficient(pool, r);
  check<ErrorKind::Runtime>(rows >= 0, OpName("combinations"),
                            "expected fewer combinations, got r = ", r, " of ", n, " elements");
  checked_numel({rows, r}, 8);
  const Tensor index = empty_cpu({rows, r}, ScalarType::Int64);
  if (!self.is_meta()) write_combinations(n, r, rows, with_replacement, index.data_as<int64_t>());
  const Tensor flat = aten::reshape(index, {-1});
  return aten::reshape(
      aten::index_select(self, 0, aten::to(flat, flat.dtype(), std::nullopt, self.device())),
      {rows, r});
}

Tensor vander(const Tensor& x, std::optional<int64_t> N, bool increasing) {
  const int64_t rows = x.size(0), columns = N.value_or(rows);
  const ScalarType type = is_integral(x.dtype(), true) ? ScalarType::Int64 : x.dtype();
  const Tensor values = aten::to(x, type);
  if (columns == 0) return aten::new_empty(values, {rows, 0});
  named("vander", [&] { return checked_numel({rows, columns}, values.element_size()); });
  const Tensor factors = aten::cat({aten::new_ones(values, {rows, 1}),
                                    aten::expand(aten::unsqueeze(values, 1), {rows, columns - 1})},
                                   1);
  const Tensor powers = aten::cumprod(factors, 1);
  return increasing ? powers : aten::flip(powers, {1});
}

}  // namespace treadle::composite
