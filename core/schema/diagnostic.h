// Diagnostics: an error in a schema or an expression, with its location and its remedy.
//
//   ops.yaml:120:13: error: unknown argument 'aplha' in check of add.Tensor; did you mean 'alpha'?
//       check: [aplha > 0]
//               ^
//
// A text being parsed is a SourceText: its characters, and the source location of each. So a
// message about the inside of a YAML scalar points into the YAML file, however the scalar was
// quoted or folded.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace treadle::schema {

// A line and column in some file. Both count from 1; columns count characters, not bytes.
struct SourceLocation {
  int line = 1;
  int column = 1;
};

// The location where a text starts.
struct SourcePos {
  std::string file = "<string>";
  int line = 1;
  int column = 1;
};

struct Diagnostic {
  std::string file;
  int line = 1;
  int column = 1;
  std::string message;
  std::string source_line;  // the whole line of the location; empty if unknown
  std::string hint;         // the remedy; empty when there is none to offer

  // The message as a compiler prints it, without a newline at the end.
  std::string format() const;
};

class SchemaError : public std::runtime_error {
 public:
  explicit SchemaError(Diagnostic diagnostic);
  const Diagnostic& diagnostic() const noexcept { return diagnostic_; }

 private:
  Diagnostic diagnostic_;
};

class SourceText {
 public:
  SourceText() = default;

  // A text that its file contains unchanged, from `start` on. Messages show its lines if `start` is
  // the beginning of a line.
  explicit SourceText(std::string_view text, SourcePos start = {});

  // A text whose character at byte i came from places[i]. places has one more element, for the end.
  // `lines` are the lines of the file.
  SourceText(std::string text, std::string file, std::vector<SourceLocation> places,
             std::shared_ptr<const std::vector<std::string>> lines);

  const std::string& text() const noexcept { return text_; }
  const std::string& file() const noexcept { return file_; }
  SourceLocation place(std::size_t offset) const;
  Diagnostic diagnostic(std::size_t offset, std::string message, std::string hint = "") const;

 private:
  std::string text_;
  std::string file_;
  std::vector<SourceLocation> places_;
  std::shared_ptr<const std::vector<std::string>> lines_;
  int first_line_ = 1;  // the number of (*lines_)[0]
};

// The word among `known` that `word` probably meant, or "" if none is similar.
std::string closest_match(std::string_view word, std::span<const std::string> known);

// "did you mean 'alpha'?", or "" if no word of `known` is similar.
std::string did_you_mean(std::string_view word, std::span<const std::string> known);

}  // namespace treadle::schema
