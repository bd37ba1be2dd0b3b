// Checks the arguments of transforms, and converts them to the right dtype and sizes.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/fft/arguments.h"

#include "aten/engine/named_errors.h"
#include "aten/ops/constant_pad_nd.h"
#include "aten/ops/narrow.h"
#include "aten/ops/to.h"

namespace treadle::composite {
namespace {

void require_points(const char* op, const char* name, int64_t n) {
  check<ErrorKind::Runtime>(n > 0, OpName(op), "expected at least 1 point, got ", name, " = ", n);
}

// The size of a real signal from that of the half of its transform.
int64_t whole(const char* op, int64_t half) {
  check<ErrorKind::Runtime>(half < (int64_t{1} << 61), OpName(op),
                            "expected a size below 2^61, got ", half);
  return 2 * (half - 1);
}

}  // namespace

FftNorm fft_norm(const char* op, std::optional<std::string_view> norm, bool forward) {
  const std::string_view name = norm.value_or("backward");
  if (name == "ortho") return FftNorm::kRoot;
  check<ErrorKind::Runtime>(name == "forward" || name == "backward", OpName(op),
                            "expected norm 'forward', 'backward' or 'ortho', got norm = '", name,
                            "'");
  return (name == "forward") == forward ? FftNorm::kCount : FftNorm::kNone;
}

Tensor fft_input(const char*, const Tensor& self, bool complex) {
  ScalarType dtype = self.dtype();
  if (is_integral(dtype, true)) dtype = default_dtype();
  if (dtype == ScalarType::Float16 || dtype == ScalarType::BFloat16) dtype = ScalarType::Float32;
  if (complex) dtype = to_complex(dtype);
  return dtype == self.dtype() ? self : aten::to(self, dtype);
}

Tensor fft_real_input(const char* op, const Tensor& self) {
  check<ErrorKind::Runtime>(!self.is_complex(), OpName(op), "expected self of a real dtype, got ",
                            name_of(self.dtype()));
  return fft_input(op, self, false);
}

FftDims fft_dim(const char* op, const Tensor& self, std::optional<int64_t> n, int64_t dim,
                bool half) {
  check<ErrorKind::Index>(self.dim() > 0, OpName(op),
                          "expected a tensor with at least 1 dimension, got a 0-dim one");
  dim = wrap_dim(op, dim, self.dim());
  const int64_t size = self.size(dim);
  const int64_t count = n ? *n : half ? whole(op, size) : size;
  require_points(op, "n", count);
  return {{dim}, {count}};
}

FftDims fft_dims(const char* op, const Tensor& self, OptionalIntList s, OptionalIntList dim,
                 bool half) {
  FftDims result;
  const int64_t rank = self.dim();
  if (dim) {
    check<ErrorKind::Index>(rank > 0 || dim->empty(), OpName(op),
                            "expected a tensor with at least 1 dimension, got a 0-dim one");
    result.dims = wrap_dims(op, dim, rank, false);
    check<ErrorKind::Runtime>(!s || s->size() == dim->size(), OpName(op),
                              "expected s and dim of the same length, got s = ", s,
                              ", dim = ", dim);
  } else {
    const int64_t count = s ? static_cast<int64_t>(s->size()) : rank;
    check<ErrorKind::Runtime>(count <= rank, OpName(op), "expected s of at most ", rank,
                              " entries, one for each dimension, got s = ", s);
    for (int64_t d = rank - count; d < rank; ++d) result.dims.push_back(d);
  }
  for (size_t i = 0; i < result.dims.size(); ++i) {
    const int64_t size = self.size(result.dims[i]);
    const bool given = s && (*s)[i] != -1;
    const bool halved = half && i + 1 == result.dims.size();
    result.sizes.push_back(given ? (*s)[i] : halved ? whole(op, size) : size);
    require_points(op, "s", result.sizes.back());
  }
  return result;
}

Tensor fft_resized(const char* op, const Tensor& self, const FftDims& wanted) {
  DimVector sizes(self.sizes());
  for (size_t i = 0; i < wanted.dims.size(); ++i) sizes[wanted.dims[i]] = wanted.sizes[i];
  if (IntList(sizes) == self.sizes()) return self;
  return named(op, [&] {
    checked_numel(sizes, self.element_size());
    Tensor cut = self;
    DimVector pad(2 * sizes.size(), 0);
    bool longer = false;
    for (size_t i = 0; i < wanted.dims.size(); ++i) {
      const int64_t d = wanted.dims[i], more = wanted.sizes[i] - self.size(d);
      if (more < 0) cut = aten::narrow(cut, d, 0, wanted.sizes[i]);
      if (more <= 0) continue;
      // Pairs from the last dimension on.
      pad[2 * (sizes.size() - 1 - static_cast<size_t>(d)) + 1] = more;
      longer = true;
    }
    return longer ? aten::constant_pad_nd(cut, pad) : cut;
  });
}

}  // namespace treadle::composite
