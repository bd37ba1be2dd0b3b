// KernelCall: a contraction as a call of the library's kernel for it.
//
// A sum of products has three tensors: two factors, and the result. Each loop of the sum runs over
// dimensions of two or of all three of them. Where each index is that of one loop, the sum is a
// product of matrices, of which two tensors share the rows, two the columns, and two what is
// summed. Where a tensor has an index step * i + dilation * j + low, and the two others have i and
// j, it is the input of a convolution, and they are its output and its weight. Which of the three
// is the result decides between the convolution and its two gradients.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "aten/fusion/partition.h"

namespace treadle::fusion {

// An index of a tensor: constant + the sum of factor * i of each term. It is outside of [0, extent)
// for some loops, unless it has one term, which is plain: of factor 1, from 0 to extent - 1.
struct IndexTerm {
  int loop;
  int64_t factor;
};
struct IndexAxis {
  int64_t extent, stride, constant = 0;
  std::vector<IndexTerm> terms;
  bool is_plain = false;
  bool is_part = false;  // other axes are of the same dimension
};

// One of the three tensors.
struct Factor {
  const Source* source = nullptr;  // null: the result
  ScalarType dtype{};
  int64_t offset = 0;
  std::vector<IndexAxis> axes;

  const IndexAxis* plain_axis(int loop) const;
  bool has(int loop) const;
};

// An axis of the input of a convolution. `outer` is a loop of the output and `inner` one of the
// weight; -1: none, of one element.
struct Window {
  int64_t extent, stride;
  int outer = -1, inner = -1;
  int64_t step = 1, dilation = 1, low = 0;
  bool is_part = false;
  bool outer_is_flipped = false, inner_is_flipped = false;
};

struct KernelCall {
  enum class Kind : uint8_t { MatrixProduct, Convolution, WeightGradient, InputGradient };
  Kind kind;
  ScalarType dtype;
  DimVector loops;
  // Of a convolution. Of a product the first two are the factors, and the last is the result.
  Factor input, weight, output;
  std::vector<Window> windows;
  // Loops of all three; of input and output; of input and weight; of output and weight.
  std::vector<int> groups, batch, in_channels, out_channels;

  const char* name() const;
};

// Nothing where the contraction is another one.
std::optional<KernelCall> find_kernel(const Node& contraction, const Body& body);

void run(const KernelCall& call, const Storage& result);

}  // namespace treadle::fusion
