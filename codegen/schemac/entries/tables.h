// The words that entries may use: keys, tags, dtypes and their classes, ways of type promotion.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace treadle::schemac {

std::span<const std::string> known_keys();
std::span<const std::string> known_tags();
std::span<const std::string> known_variants();
std::span<const std::string> known_forms();
std::span<const std::string> known_promotions();
// In which dtype an operator runs under autocast: the lower one, float32, the widest of its
// tensors, or that of the call, its parts included; or not at all.
std::span<const std::string> known_autocast_policies();
// Those that may have a policy of their own, and the word for all others.
std::span<const std::string> known_autocast_devices();

// All dtypes, in the order in which lists of them are written.
std::span<const std::string> known_dtypes();
// The dtypes and the names of classes of dtypes.
std::span<const std::string> known_dtype_words();
// Those, and what relates to the argument that selects the kernel: same, sums, index.
std::span<const std::string> known_argument_dtype_words();
// The dtypes that a word stands for, a dtype for itself; empty for an unknown word.
std::vector<std::string> expand_dtype(std::string_view word);

// The keys of ATen's file that mean nothing here, with what to do instead. Empty for other keys.
std::string aten_key_remedy(std::string_view key);
// All keys of ATen's file.
std::span<const std::string> aten_keys();

// Words that no C++ function can be called, and names that the generated code of a library has.
std::span<const std::string> cpp_keywords();
// The name of an argument or a result in C++: another one only where it is a keyword.
std::string cpp_name(std::string_view name);
std::span<const std::string> taken_cpp_names();

bool contains(std::span<const std::string> words, std::string_view word);

}  // namespace treadle::schemac
