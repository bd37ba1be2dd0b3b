// The functors of scatters (deterministic_scatter.cuh). They write elements of a source, one
// number, or the source's elements combined with the old values.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/backend/cpu/wrapping.h"
#include "aten/backend/cuda/kernels/axes.cuh"
#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/clone.h"

namespace treadle::cuda {

// The elements of a source: column c of entry e.
template <class T>
struct SourceElements {
  const T* data;
  Axes entries, columns;
  __device__ const T& at(int64_t e, int64_t c) const { return data[entries.at(e) + columns.at(c)]; }
};
// The elements of a target: column c at a place. The distance between places is `unit` elements.
template <class T>
struct TargetElements {
  T* data;
  int64_t unit;
  Axes columns;
  __device__ T& at(int64_t place, int64_t c) const { return data[place * unit + columns.at(c)]; }
};

template <class Unit>
struct Assign {
  using Value = Unit;
  SourceElements<Unit> source;
  TargetElements<Unit> target;
  __device__ Value load(int64_t e, int64_t c) const { return source.at(e, c); }
  __device__ void store(int64_t place, int64_t c, Value v, int64_t) const {
    target.at(place, c) = v;
  }
};

// One number: in the device's memory, or if that is null, the host's.
template <class Unit>
struct Fill {
  using Value = Unit;
  const Unit* there;
  Unit value;
  TargetElements<Unit> target;
  __device__ Value load(int64_t, int64_t) const { return there ? *there : value; }
  __device__ void store(int64_t place, int64_t c, Value v, int64_t) const {
    target.at(place, c) = v;
  }
};

enum class Joining { Sum, Product, Largest, Smallest };  // of extremes, NaN counts as one

// The source's elements times a factor, or the factor alone without a source, combined with the old
// elements. Elements are combined in the compute type, and rounded once.
template <class T>
struct Combine {
  using Value = Computed<T>;
  SourceElements<T> source;
  TargetElements<T> target;
  Joining joining = Joining::Sum;
  Value factor = {};
  bool scaled = false;
  bool with_target = true;  // false: the old element does not take part
  bool mean = false;        // the sum is divided by how many took part; integers round down

  __device__ Value load(int64_t e, int64_t c) const {
    if (source.data == nullptr) return factor;
    const Value v = widened(source.at(e, c));
    return scaled ? cpu::product_of(factor, v) : v;
  }
  __device__ Value join(Value a, Value b) const {
    if (joining == Joining::Sum) return cpu::sum_of(a, b);
    if (joining == Joining::Product) return cpu::product_of(a, b);
    if constexpr (std::is_arithmetic_v<Value>) {
      if (b != b) return b;
      return (joining == Joining::Largest ? b > a : b < a) ? b : a;
    }
    return a;
  }
  __device__ void store(int64_t place, int64_t c, Value all, int64_t count) const {
    T& element = target.at(place, c);
    if (with_target) all = join(widened(element), all);
    if constexpr (std::is_arithmetic_v<Value>) {
      if (mean) all = divided(all, count + (with_target ? 1 : 0));
    }
    element = narrowed<T>(all);
  }

 private:
  __device__ static Value divided(Value sum, int64_t count) {
    if constexpr (std::is_same_v<Value, bool>) {
      return sum;
    } else if constexpr (std::is_unsigned_v<Value>) {
      return static_cast<Value>(uint64_t{sum} / static_cast<uint64_t>(count));
    } else if constexpr (std::is_integral_v<Value>) {
      const int64_t s = sum;
      return static_cast<Value>(s / count - (s % count < 0));
    } else {
      return sum / static_cast<Value>(count);
    }
  }
};

// A source that is read while `written` is written.
inline Tensor apart_from(const Tensor& t, const Tensor& written) {
  return t.storage() == written.storage() ? aten::clone(t, std::nullopt) : t;
}

}  // namespace treadle::cuda
