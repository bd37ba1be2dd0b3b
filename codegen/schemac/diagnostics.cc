// Orders diagnostics by place.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/diagnostics.h"

#include <algorithm>
#include <tuple>

namespace treadle::schemac {

std::vector<schema::Diagnostic> Diagnostics::sorted(const std::vector<std::string>& files) const {
  std::vector<schema::Diagnostic> result = items_;
  const auto key = [&](const schema::Diagnostic& item) {
    return std::make_tuple(std::find(files.begin(), files.end(), item.file) - files.begin(),
                           item.line, item.column);
  };
  std::stable_sort(result.begin(), result.end(),
                   [&](const auto& a, const auto& b) { return key(a) < key(b); });
  return result;
}

}  // namespace treadle::schemac
