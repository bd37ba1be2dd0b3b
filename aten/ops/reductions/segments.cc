// segment_reduce: sums, means, products and extremes of the segments of one dimension.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/segment_reduce.h"

#include <limits>

#include "aten/ops/add.h"
#include "aten/ops/all.h"
#include "aten/ops/arange.h"
#include "aten/ops/cat.h"
#include "aten/ops/cumsum.h"
#include "aten/ops/div.h"
#include "aten/ops/eq.h"
#include "aten/ops/expand.h"
#include "aten/ops/full.h"
#include "aten/ops/ge.h"
#include "aten/ops/item.h"
#include "aten/ops/logical_or.h"
#include "aten/ops/lt.h"
#include "aten/ops/masked_fill.h"
#include "aten/ops/mul.h"
#include "aten/ops/narrow.h"
#include "aten/ops/reshape.h"
#include "aten/ops/scatter_reduce.h"
#include "aten/ops/searchsorted.h"
#include "aten/ops/sub.h"
#include "aten/ops/sum.h"
#include "aten/ops/to.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/zeros.h"
#include "core/base/error.h"

namespace treadle::composite {
namespace {

constexpr const char* kOp = "segment_reduce";
constexpr double kInf = std::numeric_limits<double>::infinity();

// The default value of an empty segment, and the name of the reduction in scatter_reduce.
struct Reduction {
  const char* word;
  double start;
};
Reduction reduction_of(std::string_view reduce) {
  if (reduce == "max" || reduce == "amax") return {"amax", -kInf};
  if (reduce == "min" || reduce == "amin") return {"amin", kInf};
  if (reduce == "prod") return {"prod", 1};
  return {"sum", 0};
}

bool holds(const Tensor& condition) {
  return condition.is_meta() || aten::item(aten::all(condition)).to<bool>();
}

// The start and end of the segments of each row (rows, count + 1).
Tensor offsets_from(const Tensor& lengths, int64_t rows, int64_t size, bool unsafe) {
  const Tensor flat = aten::to(aten::reshape(lengths, {rows, lengths.size(-1)}), ScalarType::Int64);
  if (!unsafe) {
    check<ErrorKind::Runtime>(holds(aten::ge(flat, Scalar(0))), OpName(kOp),
                              "expected lengths >= 0, got one below");
    const int64_t last = 1;
    check<ErrorKind::Runtime>(
        holds(aten::eq(aten::sum(flat, OptionalIntList(IntList(&last, 1))), Scalar(size))),
        OpName(kOp), "expected lengths that sum to the size of the dimension, ", size,
        ", got others; unsafe=True lets them");
  }
  const Tensor none = aten::zeros({rows, 1}, ScalarType::Int64, std::nullopt, lengths.device());
  return aten::cat({none, aten::cumsum(flat, 1)}, 1);
}

}  // namespace

Tensor segment_reduce(const Tensor& data, std::string_view reduce, const Tensor& lengths,
                      const Tensor& indices, const Tensor& given_offsets, int64_t axis, bool unsafe,
                      const std::optional<Scalar>& initial) {
  check<ErrorKind::Runtime>(!indices.defined(), OpName(kOp),
                            "expected lengths or offsets, got indices, which are not there yet");
  check<ErrorKind::Runtime>(lengths.defined() || given_offsets.defined(), OpName(kOp),
                            "expected lengths or offsets, got neither");
  const Tensor& ends = given_offsets.defined() ? given_offsets : lengths;
  const int64_t d = wrap_dim(kOp, axis, data.dim());
  const size_t outer = static_cast<size_t>(d);
  check<ErrorKind::Runtime>(
      data.dim() > 0 && ends.dim() == d + 1 &&
          ends.sizes().slice(0, outer) == data.sizes().slice(0, outer),
      OpName(kOp),
      "expected lengths or offsets with the sizes of data before axis and one more, got ",
      ends.sizes(), " for data of shape ", data.sizes(), " and axis = ", axis);
  check<ErrorKind::Runtime>(
      ends.dtype() == ScalarType::Int64 || ends.dtype() == ScalarType::Int32, OpName(kOp),
      "expected lengths or offsets of dtype int64 or int32, got ", ends.dtype());
  check<ErrorKind::Runtime>(!given_offsets.defined() || ends.size(-1) > 0, OpName(kOp),
                            "expected at least one offset for each row, got none");

  const int64_t rows = product(data.sizes().slice(0, outer));
  const int64_t inner = product(data.sizes().slice(outer + 1));
  const int64_t size = data.size(d);
  const Tensor offsets =
      given_offsets.defined()
          ? aten::to(aten::reshape(ends, {rows, ends.size(-1)}), ScalarType::Int64)
          : offsets_from(lengths, rows, size, unsafe);
  const int64_t count = offsets.size(-1) - 1, segments = rows * count;

  // The segment of each element; elements outside have one more.
  const auto range = [&](int64_t n) {
    return aten::arange(Scalar(n), ScalarType::Int64, std::nullopt, data.device());
  };
  const Tensor positions = aten::expand(aten::unsqueeze(range(size), 0), {rows, size});
  const Tensor place = aten::sub(aten::searchsorted(offsets, positions, false, true), Scalar(1));
  const Tensor outside =
      aten::logical_or(aten::lt(place, Scalar(0)), aten::ge(place, Scalar(count)));
  const Tensor first = aten::mul(aten::unsqueeze(range(rows), 1), Scalar(count));
  const Tensor segment = aten::masked_fill(aten::add(place, first), outside, Scalar(segments));
  const Tensor index = aten::expand(aten::reshape(segment, {rows * size, 1}), {rows * size, inner});

  const Reduction kind = reduction_of(reduce);
  const bool mean = reduce == "mean";
  const Tensor start = aten::full({segments + 1, inner}, initial.value_or(Scalar(kind.start)),
                                  data.dtype(), std::nullopt, data.device());
  Tensor out =
      aten::scatter_reduce(start, 0, index, aten::reshape(data, {rows * size, inner}), kind.word);
  if (mean) {
    const Tensor none =
        aten::zeros({segments + 1, inner}, data.dtype(), std::nullopt, data.device());
    const Tensor one =
        aten::full({rows * size, inner}, Scalar(1), data.dtype(), std::nullopt, data.device());
    const Tensor counts = aten::scatter_reduce(none, 0, index, one, "sum");
    out = aten::div(
        out, initial ? aten::masked_fill(counts, aten::eq(counts, Scalar(0)), Scalar(1)) : counts);
  }
  DimVector sizes(data.sizes());
  sizes[outer] = count;
  return aten::reshape(aten::narrow(out, 0, 0, segments), sizes);
}

}  // namespace treadle::composite
