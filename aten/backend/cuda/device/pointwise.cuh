// The loops of generated pointwise kernels. A thread handles several packs or elements. It reads
// the elements of all inputs before it computes, so that many reads are in flight at once.
//
// `Function::eval` is the operator's expression. Compute is the type of its arithmetic. `Numbers`
// holds the call's numbers in that type. `apply` passes them to eval after the tensors' elements.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/backend/cuda/device/values.cuh"

namespace treadle::cuda {

template <class Compute, int n>
struct Numbers {
  Compute at[n];
};
template <class Compute>
struct Numbers<Compute, 0> {};

template <int... i>
struct Places {};
template <int n, int... i>
struct PlacesBelow : PlacesBelow<n - 1, n - 1, i...> {};
template <int... i>
struct PlacesBelow<0, i...> {
  using type = Places<i...>;
};

template <class Function, class Out, class Compute, int n, int... i, class... Elements>
inline Out evaluate(const Numbers<Compute, n>& numbers, Places<i...>, const Elements&... elements) {
  return convert_element<Out>(simd::element_of(
      Function::eval(simd::value_at<Compute>(elements)..., simd::value_of(numbers.at[i])...)));
}

// ---- contiguous: every operand follows the output, or is one element ----

// A thread's part of an operand: `times` packs, or one element.
template <class T, bool single, int pack, int times>
struct Held {
  const T* from;
  Pack<T, pack> packs[times];
  explicit Held(const T* from) : from(from) {}
  template <class Index>
  void load(int k, Index at) {
    packs[k] = *reinterpret_cast<const Pack<T, pack>*>(from + at);
  }
  const T& get(int k, int e) const { return packs[k].at[e]; }
  template <class Index>
  const T& one(Index at) const {
    return from[at];
  }
};
template <class T, int pack, int times>
struct Held<T, true, pack, times> {
  const T* from;
  T value;
  explicit Held(const T* from) : from(from) {}
  template <class Index>
  void load(int k, Index) {
    if (k == 0) value = *from;
  }
  const T& get(int, int) const { return value; }
  template <class Index>
  const T& one(Index) const {
    return *from;
  }
};

template <class Function, int pack, int times, class Index, class Out, class Compute, int n,
          class... Operands>
inline void contiguous(Index total, Out* out, const Numbers<Compute, n>& numbers,
                       Operands... operands) {
  using All = typename PlacesBelow<n>::type;
  const Index step = Index(blockDim.x) * pack;
  const Index start = Index(blockIdx.x) * step * times;
  const Index first = start + Index(threadIdx.x) * pack;
  if (total - start >= step * times) {
#pragma unroll
    for (int k = 0; k < times; ++k) (operands.load(k, first + k * step), ...);
#pragma unroll
    for (int k = 0; k < times; ++k) {
      Pack<Out, pack> results;
#pragma unroll
      for (int e = 0; e < pack; ++e)
        results.at[e] = evaluate<Function, Out>(numbers, All(), operands.get(k, e)...);
      *reinterpret_cast<Pack<Out, pack>*>(out + first + k * step) = results;
    }
    return;
  }
  // The last block: element by element, as many as remain.
  for (Index at = start + threadIdx.x; at < total; at += blockDim.x)
    out[at] = evaluate<Function, Out>(numbers, All(), operands.one(at)...);
}

// ---- strided: an element's place in each operand is the sum of its indices' steps ----

template <class Index, int dims, int operands>
struct Geometry {
  Divisor<Index> sizes[dims];         // outermost first
  long long strides[operands][dims];  // in bytes; the output's first
};
// With 32-bit indices every offset fits 32 bits, too.
template <int dims, int operands>
struct Geometry<unsigned, dims, operands> {
  Divisor<unsigned> sizes[dims];
  int strides[operands][dims];
};

template <class Index>
struct PlaceOf {
  using type = long long;
};
template <>
struct PlaceOf<unsigned> {
  using type = int;
};

template <class Index, int dims, int operands>
inline void find_places(const Geometry<Index, dims, operands>& g, Index at,
                        typename PlaceOf<Index>::type (&places)[operands]) {
  using Place = typename PlaceOf<Index>::type;
#pragma unroll
  for (int o = 0; o < operands; ++o) places[o] = 0;
#pragma unroll
  for (int d = dims - 1; d > 0; --d) {
    const Index outer = g.sizes[d].quotient(at);
    const Place i = static_cast<Place>(at - outer * g.sizes[d].value);
#pragma unroll
    for (int o = 0; o < operands; ++o) places[o] += i * g.strides[o][d];
    at = outer;
  }
#pragma unroll
  for (int o = 0; o < operands; ++o) places[o] += static_cast<Place>(at) * g.strides[o][0];
}

template <class T>
inline const T& element_at(const char* base, long long place) {
  return *reinterpret_cast<const T*>(base + place);
}

// A thread's part of an operand: an element at each of its positions.
template <class T, int times>
struct Gathered {
  const char* from;
  T values[times];
  explicit Gathered(const char* from) : from(from) {}
};

template <class Function, int times, class Index, int dims, int count, class Out, class Compute,
          int n, int... k, class... Ts>
inline void strided_of(const Geometry<Index, dims, count>& g, Index total, char* out,
                       const Numbers<Compute, n>& numbers, Places<k...>,
                       Gathered<Ts, times>... inputs) {
  using All = typename PlacesBelow<n>::type;
  const Index first = Index(blockIdx.x) * blockDim.x * times + threadIdx.x;
  typename PlaceOf<Index>::type targets[times];
#pragma unroll
  for (int t = 0; t < times; ++t) {
    const Index at = first + Index(t) * blockDim.x;
    if (at >= total) break;
    typename PlaceOf<Index>::type places[count];
    find_places(g, at, places);
    targets[t] = places[0];
    ((inputs.values[t] = element_at<Ts>(inputs.from, places[k + 1])), ...);
  }
#pragma unroll
  for (int t = 0; t < times; ++t) {
    if (first + Index(t) * blockDim.x >= total) break;
    *reinterpret_cast<Out*>(out + targets[t]) =
        evaluate<Function, Out>(numbers, All(), inputs.values[t]...);
  }
}
template <class Function, class Out, int times, class Index, int dims, int count, class Compute,
          int n, class... Ts>
inline void strided(const Geometry<Index, dims, count>& g, Index total, char* out,
                    const Numbers<Compute, n>& numbers, Gathered<Ts, times>... inputs) {
  strided_of<Function, times, Index, dims, count, Out>(
      g, total, out, numbers, typename PlacesBelow<sizeof...(Ts)>::type(), inputs...);
}

}  // namespace treadle::cuda
