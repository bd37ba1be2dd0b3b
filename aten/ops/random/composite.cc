// Random operators composed of the few that write random numbers.
//
// SPDX-License-Identifier: Apache-2.0

#include <limits>

#include "aten/engine/strides/view_shapes.h"
#include "aten/ops/_random_range_.h"
#include "aten/ops/_randperm_.h"
#include "aten/ops/add.h"
#include "aten/ops/all.h"
#include "aten/ops/bernoulli.h"
#include "aten/ops/bernoulli_.h"
#include "aten/ops/creation/factory_options.h"
#include "aten/ops/empty_like.h"
#include "aten/ops/expand.h"
#include "aten/ops/ge.h"
#include "aten/ops/item.h"
#include "aten/ops/mul.h"
#include "aten/ops/normal.h"
#include "aten/ops/normal_.h"
#include "aten/ops/rand.h"
#include "aten/ops/rand_like.h"
#include "aten/ops/randint.h"
#include "aten/ops/randint_like.h"
#include "aten/ops/randn.h"
#include "aten/ops/randn_like.h"
#include "aten/ops/random_.h"
#include "aten/ops/randperm.h"
#include "aten/ops/uniform_.h"

namespace treadle::composite {
namespace {

// The integers, all in a row from 0 up and from 0 down, that a dtype holds
// exactly.
struct IntegerRange {
  int64_t low, high;
};
IntegerRange exact_integers(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Bool:
      return {0, 1};
    case ScalarType::UInt8:
      return {0, 255};
    case ScalarType::UInt16:
      return {0, UINT16_MAX};
    case ScalarType::UInt32:
      return {0, UINT32_MAX};
    case ScalarType::UInt64:  // as far as an argument can say
      return {0, INT64_MAX};
    case ScalarType::Int8:
      return {-128, 127};
    case ScalarType::Int16:
      return {-32768, 32767};
    case ScalarType::Int32:
      return {INT32_MIN, INT32_MAX};
    case ScalarType::Int64:
      return {INT64_MIN, INT64_MAX};
    case ScalarType::Float16:
      return {-(1 << 11), 1 << 11};
    case ScalarType::BFloat16:
      return {-(1 << 8), 1 << 8};
    case ScalarType::Float32:
      return {-(1 << 24), 1 << 24};
    case ScalarType::Float64:
      return {-(int64_t{1} << 53), int64_t{1} << 53};
    default:
      break;
  }
  fail<ErrorKind::NotImplemented>(OpName("random_"), "expected a real dtype, got ", dtype);
}

void require_deviation(const char* op, const Tensor& std) {
  check<ErrorKind::Runtime>(std.is_floating_point(), OpName(op), "expected a floating std, got ",
                            std.dtype());
  if (std.is_meta()) return;
  check<ErrorKind::Runtime>(aten::item(aten::all(aten::ge(std, Scalar(0)))).to<bool>(), OpName(op),
                            "expected std >= 0, got one that is not");
}

}  // namespace

Tensor rand(IntList size, const Generator& generator, OptDtype dtype, OptLayout layout,
            OptDevice device, OptBool pin_memory) {
  const FactoryOptions options("rand", dtype, layout, device, pin_memory, default_dtype());
  return fresh(aten::uniform_(options.empty(size), 0, 1, generator));
}
Tensor rand(IntList size, OptDtype dtype, OptLayout layout, OptDevice device, OptBool pin_memory) {
  return composite::rand(size, nullptr, dtype, layout, device, pin_memory);
}
Tensor rand_like(const Tensor& self, OptDtype dtype, OptLayout layout, OptDevice device,
                 OptBool pin_memory, OptFormat memory_format) {
  return fresh(
      aten::uniform_(aten::empty_like(self, dtype, layout, device, pin_memory, memory_format)));
}

Tensor randn(IntList size, const Generator& generator, OptDtype dtype, OptLayout layout,
             OptDevice device, OptBool pin_memory) {
  const FactoryOptions options("randn", dtype, layout, device, pin_memory, default_dtype());
  return fresh(aten::normal_(options.empty(size), 0, 1, generator));
}
Tensor randn(IntList size, OptDtype dtype, OptLayout layout, OptDevice device, OptBool pin_memory) {
  return composite::randn(size, nullptr, dtype, layout, device, pin_memory);
}
Tensor randn_like(const Tensor& self, OptDtype dtype, OptLayout layout, OptDevice device,
                  OptBool pin_memory, OptFormat memory_format) {
  return fresh(
      aten::normal_(aten::empty_like(self, dtype, layout, device, pin_memory, memory_format)));
}

Tensor random_(const Tensor& self, int64_t from, std::optional<int64_t> to,
               const Generator& generator) {
  const IntegerRange fits = exact_integers(self.dtype());
  check<ErrorKind::Runtime>(!to || from < *to, OpName("random_"),
                            "expected from < to, got from = ", from, ", to = ", to);
  const int64_t high = to ? *to - 1 : fits.high;
  check<ErrorKind::Runtime>(from >= fits.low && high <= fits.high && from <= high,
                            OpName("random_"), "expected a range that ", self.dtype(), " holds, [",
                            fits.low, ", ", fits.high, "], got from = ", from, ", to = ", to);
  return aten::_random_range_(self, from, high, generator);
}
Tensor random_(const Tensor& self, int64_t to, const Generator& generator) {
  return composite::random_(self, 0, std::optional(to), generator);
}
Tensor random_(const Tensor& self, const Generator& generator) {
  return aten::_random_range_(self, 0, exact_integers(self.dtype()).high, generator);
}

Tensor randint(int64_t low, int64_t high, IntList size, const Generator& generator, OptDtype dtype,
               OptLayout layout, OptDevice device, OptBool pin_memory) {
  const FactoryOptions options("randint", dtype, layout, device, pin_memory, ScalarType::Int64);
  return fresh(composite::random_(options.empty(size), low, std::optional(high), generator));
}
Tensor randint(int64_t low, int64_t high, IntList size, OptDtype dtype, OptLayout layout,
               OptDevice device, OptBool pin_memory) {
  return composite::randint(low, high, size, nullptr, dtype, layout, device, pin_memory);
}
Tensor randint(int64_t high, IntList size, const Generator& generator, OptDtype dtype,
               OptLayout layout, OptDevice device, OptBool pin_memory) {
  return composite::randint(0, high, size, generator, dtype, layout, device, pin_memory);
}
Tensor randint(int64_t high, IntList size, OptDtype dtype, OptLayout layout, OptDevice device,
               OptBool pin_memory) {
  return composite::randint(0, high, size, nullptr, dtype, layout, device, pin_memory);
}
Tensor randint_like(const Tensor& self, int64_t low, int64_t high, OptDtype dtype, OptLayout layout,
                    OptDevice device, OptBool pin_memory, OptFormat memory_format) {
  const Tensor result = aten::empty_like(self, dtype, layout, device, pin_memory, memory_format);
  return fresh(composite::random_(result, low, std::optional(high), nullptr));
}
Tensor randint_like(const Tensor& self, int64_t high, OptDtype dtype, OptLayout layout,
                    OptDevice device, OptBool pin_memory, OptFormat memory_format) {
  return composite::randint_like(self, 0, high, dtype, layout, device, pin_memory, memory_format);
}

Tensor rand_like(const Tensor& self, const Generator& generator, OptDtype dtype, OptLayout layout,
                 OptDevice device, OptBool pin_memory, OptFormat memory_format) {
  return fresh(aten::uniform_(
      aten::empty_like(self, dtype, layout, device, pin_memory, memory_format), 0, 1, generator));
}
Tensor randn_like(const Tensor& self, const Generator& generator, OptDtype dtype, OptLayout layout,
                  OptDevice device, OptBool pin_memory, OptFormat memory_format) {
  return fresh(aten::normal_(
      aten::empty_like(self, dtype, layout, device, pin_memory, memory_format), 0, 1, generator));
}
Tensor randint_like(const Tensor& self, int64_t low, int64_t high, const Generator& generator,
                    OptDtype dtype, OptLayout layout, OptDevice device, OptBool pin_memory,
                    OptFormat memory_format) {
  const Tensor result = aten::empty_like(self, dtype, layout, device, pin_memory, memory_format);
  return fresh(composite::random_(result, low, std::optional(high), generator));
}
Tensor randint_like(const Tensor& self, int64_t high, const Generator& generator, OptDtype dtype,
                    OptLayout layout, OptDevice device, OptBool pin_memory,
                    OptFormat memory_format) {
  return composite::randint_like(self, 0, high, generator, dtype, layout, device, pin_memory,
                                 memory_format);
}
Tensor randint_like(const Tensor& self, const Tensor& high, OptDtype dtype, OptLayout layout,
                    OptDevice device, OptBool pin_memory, OptFormat memory_format) {
  const int64_t above = aten::item(high).to<int64_t>();
  check<ErrorKind::Runtime>(above > 0, OpName("randint_like"),
                            "expected high > 0, got high = ", above);
  return composite::randint_like(self, 0, above, nullptr, dtype, layout, device, pin_memory,
                                 memory_format);
}

Tensor randperm(int64_t n, const Generator& generator, OptDtype dtype, OptLayout layout,
                OptDevice device, OptBool pin_memory) {
  const FactoryOptions options("randperm", dtype, layout, device, pin_memory, ScalarType::Int64);
  check<ErrorKind::Runtime>(n == 0 || n - 1 <= exact_integers(options.dtype).high,
                            OpName("randperm"), "expected n that ", options.dtype,
                            " can count to, got n = ", n);
  return fresh(aten::_randperm_(options.empty({n}), generator));
}
Tensor randperm(int64_t n, OptDtype dtype, OptLayout layout, OptDevice device, OptBool pin_memory) {
  return composite::randperm(n, nullptr, dtype, layout, device, pin_memory);
}

Tensor bernoulli(const Tensor& self, const Generator& generator) {
  return fresh(aten::bernoulli_(aten::empty_like(self), self, generator));
}
Tensor bernoulli(const Tensor& self, double p, const Generator& generator) {
  return fresh(aten::bernoulli_(aten::empty_like(self), p, generator));
}

Tensor normal(const Tensor& mean, double std, const Generator& generator) {
  return aten::add(aten::normal_(aten::empty_like(mean), 0, std, generator), mean);
}
Tensor normal(double mean, const Tensor& std, const Generator& generator) {
  require_deviation("normal", std);
  return aten::add(aten::mul(aten::normal_(aten::empty_like(std), 0, 1, generator), std),
                   Scalar(mean));
}
Tensor normal(const Tensor& mean, const Tensor& std, const Generator& generator) {
  require_deviation("normal", std);
  const DimVector sizes = shape::broadcast_sizes("normal", mean.sizes(), std.sizes());
  const Tensor numbers =
      aten::normal_(aten::empty_like(aten::expand(mean, sizes)), 0, 1, generator);
  return aten::add(aten::mul(numbers, std), mean);
}
Tensor normal(double mean, double std, IntList size, const Generator& generator, OptDtype dtype,
              OptLayout layout, OptDevice device, OptBool pin_memory) {
  const FactoryOptions options("normal", dtype, layout, device, pin_memory, default_dtype());
  return fresh(aten::normal_(options.empty(size), mean, std, generator));
}

}  // namespace treadle::composite
