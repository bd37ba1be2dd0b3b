// The loops of generated reductions. A block of 256 threads folds `width` outputs, each by 256 /
// width threads. The assignment of elements to threads and to their accumulators, and the order in
// which results are joined, depend only on the sizes and strides: the same bits each run.
//
// Long folds of few outputs are split into pieces for many blocks. A second kernel folds their
// results. `Function` has init (where a fold starts from a value), step, combine and final.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/backend/cuda/device/pointwise.cuh"

namespace treadle::cuda {

inline constexpr int kFoldThreads = 256;

template <class Index, int kept, int folded>
struct FoldGeometry {
  Divisor<Index> kept_sizes[kept];
  long long kept_in[kept], kept_out[kept];  // strides in bytes
  Divisor<Index> folded_sizes[folded];
  long long folded_in[folded];
};

template <class Index, int dims>
inline long long place_of(Index at, const Divisor<Index> (&sizes)[dims],
                          const long long (&strides)[dims]) {
  long long place = 0;
#pragma unroll
  for (int d = dims - 1; d > 0; --d) {
    const Index outer = sizes[d].quotient(at);
    place += static_cast<long long>(at - outer * sizes[d].value) * strides[d];
    at = outer;
  }
  return place + static_cast<long long>(at) * strides[0];
}

// A part of a fold: the value so far, and whether there is one.
template <class Function, class T>
struct Part {
  using V = simd::Value<T>;
  V value;
  bool filled;

  static Part empty() {
    if constexpr (Function::starts)
      return {simd::as_value_of<T>(Function::template init<V>()), true};
    else
      return {simd::value_of(T()), false};
  }
  void step(V x) {
    value = filled ? simd::as_value_of<T>(Function::step(value, x)) : x;
    filled = true;
  }
  void join(const Part& other) {
    if (!other.filled) return;
    value = filled ? simd::as_value_of<T>(Function::combine(value, other.value)) : other.value;
    filled = true;
  }
};

// The operation of a kernel on elements: it folds those of the input, or joins the results of
// pieces.
template <class Function, bool joins, class T>
inline void take(Part<Function, T>& part, simd::Value<T> x) {
  if constexpr (joins)
    part.join({x, true});
  else
    part.step(x);
}

// Elements [begin, end) that are consecutive in memory, by the threads of a row. Those of a pack go
// to accumulators of their own. `wide`: packs are read at once.
template <class Function, class T, bool joins, bool wide, class In, class Index>
inline Part<Function, T> fold_row(const In* row, Index begin, Index end, int lane, int lanes) {
  constexpr int pack = sizeof(In) < 16 ? 16 / sizeof(In) : 1, times = 4;
  Part<Function, T> parts[pack];
#pragma unroll
  for (int e = 0; e < pack; ++e) parts[e] = Part<Function, T>::empty();
  const Index step = Index(lanes) * pack;
  Index at = begin + Index(lane) * pack;
  const auto read = [&](Index from) {
    if constexpr (wide) return *reinterpret_cast<const Pack<In, pack>*>(row + from);
    Pack<In, pack> p;
#pragma unroll
    for (int e = 0; e < pack; ++e) p.at[e] = row[from + e];
    return p;
  };
  const auto fold = [&](const Pack<In, pack>& p) {
#pragma unroll
    for (int e = 0; e < pack; ++e) take<Function, joins, T>(parts[e], simd::value_at<T>(p.at[e]));
  };
  for (; at + step * (times - 1) + pack <= end; at += step * times) {
    Pack<In, pack> held[times];
#pragma unroll
    for (int k = 0; k < times; ++k) held[k] = read(at + step * k);
#pragma unroll
    for (int k = 0; k < times; ++k) fold(held[k]);
  }
  for (; at + pack <= end; at += step) fold(read(at));
  for (int e = 0; e < pack; ++e)
    if (at + e < end) take<Function, joins, T>(parts[e], simd::value_at<T>(row[at + e]));
#pragma unroll
  for (int half = pack / 2; half > 0; half /= 2) {
#pragma unroll
    for (int e = 0; e < half; ++e) parts[e].join(parts[e + half]);
  }
  return parts[0];
}

// The same for elements at any stride: four at a time, each for its own accumulator.
template <class Function, class T, bool joins, class In, class Index, int kept, int folded>
inline Part<Function, T> fold_places(const FoldGeometry<Index, kept, folded>& g, const char* base,
                                     Index begin, Index end, int lane, int lanes) {
  constexpr int times = 4;
  Part<Function, T> parts[times];
#pragma unroll
  for (int k = 0; k < times; ++k) parts[k] = Part<Function, T>::empty();
  const auto read = [&](Index at) -> const In& {
    return element_at<In>(base, place_of(at, g.folded_sizes, g.folded_in));
  };
  Index at = begin + lane;
  for (; at + Index(lanes) * (times - 1) < end; at += Index(lanes) * times) {
    In held[times];
#pragma unroll
    for (int k = 0; k < times; ++k) held[k] = read(at + Index(lanes) * k);
#pragma unroll
    for (int k = 0; k < times; ++k) take<Function, joins, T>(parts[k], simd::value_at<T>(held[k]));
  }
#pragma unroll
  for (int k = 0; k < times - 1; ++k) {
    const Index last = at + Index(lanes) * k;
    if (last < end) take<Function, joins, T>(parts[k], simd::value_at<T>(read(last)));
  }
  parts[0].join(parts[1]);
  parts[2].join(parts[3]);
  parts[0].join(parts[2]);
  return parts[0];
}

// rows: the folded elements are consecutive in memory, and neighbouring threads fold one output.
// Otherwise neighbouring threads fold neighbouring outputs. `whole`: the result is that of the
// output, else that of a piece. blockIdx.y is the piece.
template <class Function, class T, bool joins, bool rows, bool wide, bool whole, class In,
          class Out, class Index, int kept, int folded>
inline void fold(const FoldGeometry<Index, kept, folded>& g, const char* in, char* out,
                 Index outputs, Index count, Index piece, int width, T divisor) {
  using V = simd::Value<T>;
  const int lanes = kFoldThreads / width, thread = threadIdx.x;
  const int lane = rows ? thread % lanes : thread / width;
  const int column = rows ? thread / lanes : thread % width;
  const Index output = Index(blockIdx.x) * width + column;
  const Index begin = Index(blockIdx.y) * piece;
  const Index end = count - begin < piece ? count : begin + piece;
  Part<Function, T> part = Part<Function, T>::empty();
  if (output < outputs) {
    const char* const base = in + place_of(output, g.kept_sizes, g.kept_in);
    if constexpr (rows)
      part = fold_row<Function, T, joins, wide>(reinterpret_cast<const In*>(base), begin, end, lane,
                                                lanes);
    else
      part = fold_places<Function, T, joins, In>(g, base, begin, end, lane, lanes);
  }
  __shared__ V values[kFoldThreads];
  __shared__ bool filled[kFoldThreads];
  values[thread] = part.value;
  filled[thread] = part.filled;
  const int apart = rows ? 1 : width;
  for (int half = lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane >= half) continue;
    const int other = thread + half * apart;
    part.join({values[other], filled[other]});
    values[thread] = part.value;
    filled[thread] = part.filled;
  }
  if (lane != 0 || output >= outputs) return;
  if constexpr (whole) {
    const V result = simd::as_value_of<T>(Function::final(part.value, simd::value_of(divisor)));
    *reinterpret_cast<Out*>(out + place_of(output, g.kept_sizes, g.kept_out)) =
        convert_element<Out>(simd::element_of(result));
  } else {
    reinterpret_cast<Out*>(out)[output * Index(gridDim.y) + blockIdx.y] =
        convert_element<Out>(simd::element_of(part.value));
  }
}

}  // namespace treadle::cuda
