// Compiled loops: the functions that a compiler made of the sources of fused loops. A source that
// is used often is wanted; whoever has a compiler takes it and gives its function back.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace treadle::fusion {

// Whether somebody compiles. Everything works without: the operators' own loops run.
bool is_compiling() noexcept;
void set_compiling(bool on) noexcept;

// The function of a source; null as long as there is none. Counts the uses.
void* find_compiled(const std::string& source);

// Takes sources that are wanted, at most so many.
std::vector<std::string> take_wanted(size_t most);
// Null where it could not be compiled: nobody asks again.
void set_compiled(const std::string& source, void* function);

// In a child process: the thread that took some stayed in the parent.
void want_again();

struct CompiledCount {
  int64_t ready, wanted, failed;
};
CompiledCount count_compiled();

}  // namespace treadle::fusion
