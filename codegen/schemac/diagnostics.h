// Collects every diagnostic of a run, so that one run of schemac reports all that is wrong.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/schema/diagnostic.h"

namespace treadle::schemac {

class Diagnostics {
 public:
  void add(schema::Diagnostic diagnostic) { items_.push_back(std::move(diagnostic)); }
  bool empty() const { return items_.empty(); }
  std::size_t size() const { return items_.size(); }

  // All of them in the order of their places: files in the order of `files`, then lines, then
  // columns.
  std::vector<schema::Diagnostic> sorted(const std::vector<std::string>& files) const;

 private:
  std::vector<schema::Diagnostic> items_;
};

}  // namespace treadle::schemac
