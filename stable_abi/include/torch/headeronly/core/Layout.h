// Layout: how the elements of a tensor are kept, by PyTorch's names.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace c10 {

enum class Layout : int8_t {
  Strided,
  Sparse,
  SparseCsr,
  Mkldnn,
  SparseCsc,
  SparseBsr,
  SparseBsc,
  Jagged,
  NumOptions
};
constexpr Layout kStrided = Layout::Strided, kSparse = Layout::Sparse;

}  // namespace c10

namespace torch::headeronly {
using c10::kSparse;
using c10::kStrided;
using c10::Layout;
}  // namespace torch::headeronly
