// Formats diagnostics, and keeps the map from a text's characters to locations in its file.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/schema/diagnostic.h"

#include <algorithm>
#include <utility>

namespace treadle::schema {
namespace {

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// White space that puts a caret under the given column of a line. Tabs are kept, so that the caret
// lines up in a terminal.
std::string caret_padding(const std::string& line, int column) {
  std::string padding;
  int current = 0;
  for (char c : line) {
    if (continues_character(c)) continue;
    if (++current >= column) break;
    padding += c == '\t' ? '\t' : ' ';
  }
  while (++current < column) padding += ' ';
  return padding;
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines(1);
  for (char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  return lines;
}

// The number of insertions, deletions, replacements and swaps of neighbours that turn a into b.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_previous(b.size() + 1), previous(b.size() + 1),
      current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], before_previous[j - 2] + 1);
      }
    }
    std::swap(before_previous, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

}  // namespace

std::string Diagnostic::format() const {
  std::string text =
      file + ":" + std::to_string(line) + ":" + std::to_string(column) + ": error: " + message;
  if (!hint.empty()) text += "; " + hint;
  if (!source_line.empty())
    text += "\n" + source_line + "\n" + caret_padding(source_line, column) + "^";
  return text;
}

SchemaError::SchemaError(Diagnostic diagnostic)
    : std::runtime_error(diagnostic.format()), diagnostic_(std::move(diagnostic)) {}

SourceText::SourceText(std::string_view text, SourcePos start)
    : text_(text), file_(std::move(start.file)), first_line_(start.line) {
  places_.reserve(text.size() + 1);
  SourceLocation place{start.line, start.column};
  for (char c : text) {
    if (continues_character(c) && place.column > 1) --place.column;
    places_.push_back(place);
    if (c == '\n') {
      place = {place.line + 1, 1};
    } else {
      ++place.column;
    }
  }
  places_.push_back(place);
  if (start.column == 1)
    lines_ = std::make_shared<const std::vector<std::string>>(split_lines(text));
}

SourceText::SourceText(std::string text, std::string file, std::vector<SourceLocation> places,
                       std::shared_ptr<const std::vector<std::string>> lines)
    : text_(std::move(text)),
      file_(std::move(file)),
      places_(std::move(places)),
      lines_(std::move(lines)) {
  if (places_.size() != text_.size() + 1)
    throw std::logic_error("SourceText: one place per character, and the end");
}

SourceLocation SourceText::place(std::size_t offset) const {
  if (places_.empty()) return {};
  return places_[std::min(offset, places_.size() - 1)];
}

Diagnostic SourceText::diagnostic(std::size_t offset, std::string message, std::string hint) const {
  const SourceLocation at = place(offset);
  Diagnostic result{file_, at.line, at.column, std::move(message), "", std::move(hint)};
  const int index = at.line - first_line_;
  if (lines_ && index >= 0 && index < static_cast<int>(lines_->size())) {
    result.source_line = (*lines_)[static_cast<std::size_t>(index)];
  }
  return result;
}

std::string closest_match(std::string_view word, std::span<const std::string> known) {
  // Beyond a third of its letters a word is another word. Long words are not worth the quadratic
  // search.
  if (word.size() > 64) return "";
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::string best;
  for (const std::string& candidate : known) {
    if (candidate.size() > word.size() + best_distance ||
        word.size() > candidate.size() + best_distance)
      continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance && distance < std::max(word.size(), candidate.size())) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> known) {
  const std::string match = closest_match(word, known);
  return match.empty() ? "" : "did you mean '" + match + "'?";
}

}  // namespace treadle::schema
