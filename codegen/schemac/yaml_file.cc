// Loads YAML and maps the characters of its scalars to places in the file.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/yaml_file.h"

#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

namespace treadle::schemac {
namespace {

using schema::Diagnostic;
using schema::SchemaError;
using schema::SourceLocation;
using schema::SourceText;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

std::string kind_of(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Scalar:
      return "text";
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Map:
      return "a mapping";
    default:
      return "nothing";
  }
}

// The remedy for the mistakes that people make in YAML rather than in what it holds.
std::string yaml_hint(const std::string& message, const std::string& line) {
  if (line.find('\t') != std::string::npos && line.find_first_not_of(" \t") != std::string::npos &&
      line.substr(0, line.find_first_not_of(" \t")).find('\t') != std::string::npos) {
    return "indent with spaces, not tabs";
  }
  if (message == "illegal map value") return "quote a value that holds ': ', and indent keys alike";
  if (message == "end of sequence flow not found") return "close the list with ']'";
  if (message == "end of map flow not found")
    return "close the mapping with '}', and quote values that hold braces";
  if (message == "unknown token") return "quote a value that starts with '@', '`' or '%'";
  if (message == "unknown anchor") return "quote a value that starts with '*'";
  return "";
}

// Looks only at where documents start.
class DocumentStarts : public YAML::EventHandler {
 public:
  std::optional<YAML::Mark> last;

  void OnDocumentStart(const YAML::Mark& mark) override { last = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

// Where a second document begins. YAML::Load stops after the first without a word, and
// YAML::LoadAll never ends on a text such as "- a\n,", which yaml-cpp takes for ever more empty
// documents.
std::optional<YAML::Mark> second_document(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStarts starts;
  if (!parser.HandleNextDocument(starts)) return std::nullopt;
  starts.last.reset();
  if (!parser.HandleNextDocument(starts)) return std::nullopt;
  return starts.last;
}

}  // namespace

YamlFile::YamlFile(std::string path, std::string text)
    : path_(std::move(path)), text_(std::move(text)) {
  auto lines = std::make_shared<std::vector<std::string>>();
  line_starts_.push_back(0);
  for (std::size_t begin = 0; begin <= text_.size();) {
    const std::size_t end = std::min(text_.find('\n', begin), text_.size());
    std::string line = text_.substr(begin, end - begin);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines->push_back(std::move(line));
    begin = end + 1;
    line_starts_.push_back(std::min(begin, text_.size()));
  }
  lines_ = std::move(lines);
  try {
    root_ = YAML::Load(text_);
    if (const std::optional<YAML::Mark> second = second_document(text_)) {
      const SourceLocation at = position(*second).place;
      throw SchemaError(
          Diagnostic{path_, at.line, at.column, "text after the end of the list",
                     (*lines_)[static_cast<std::size_t>(at.line - 1)],
                     "a file is one list, whose entries begin with '- ' in one column"});
    }
  } catch (const YAML::Exception& failure) {
    const Position at = position(failure.mark);
    const std::string& line = (*lines_)[static_cast<std::size_t>(at.place.line - 1)];
    throw SchemaError(Diagnostic{path_, at.place.line, at.place.column, "not YAML: " + failure.msg,
                                 line, yaml_hint(failure.msg, line)});
  }
}

YamlFile::Position YamlFile::position(const YAML::Mark& mark) const {
  const std::size_t last = lines_->size() - 1;
  const std::size_t line = mark.line < 0 ? 0 : std::min(static_cast<std::size_t>(mark.line), last);
  Position result{line_starts_[line], {static_cast<int>(line) + 1, 1}};
  const std::size_t end = line_starts_[line] + (*lines_)[line].size();
  for (int i = 0; i < mark.column && result.offset < end; ++i) advance(result);
  return result;
}

std::string YamlFile::section(const YAML::Node& entry) const {
  constexpr std::string_view kBegin = "# ---- ", kEnd = " ----";
  for (int line = entry.Mark().line; line >= 0; --line) {
    const std::string& text = (*lines_)[static_cast<std::size_t>(line)];
    if (text.starts_with(kBegin) && text.ends_with(kEnd) &&
        text.size() > kBegin.size() + kEnd.size())
      return text.substr(kBegin.size(), text.size() - kBegin.size() - kEnd.size());
  }
  return "";
}

void YamlFile::advance(Position& position) const {
  if (position.offset >= text_.size()) return;
  if (text_[position.offset] == '\n') {
    ++position.offset;
    position.place = {position.place.line + 1, 1};
    return;
  }
  do {
    ++position.offset;
  } while (position.offset < text_.size() && continues_character(text_[position.offset]));
  ++position.place.column;
}

Diagnostic YamlFile::error(const YAML::Node& at, std::string message, std::string hint) const {
  const SourceLocation place = position(at.Mark()).place;
  return {path_,
          place.line,
          place.column,
          std::move(message),
          (*lines_)[static_cast<std::size_t>(place.line - 1)],
          std::move(hint)};
}

SourceText YamlFile::scalar(const YAML::Node& node) const {
  const std::string& value = node.Scalar();
  Position at = position(node.Mark());
  const auto raw = [&](std::size_t ahead = 0) {
    return at.offset + ahead < text_.size() ? text_[at.offset + ahead] : '\0';
  };
  const auto skip_space = [&] {
    while (is_space(raw())) advance(at);
  };

  // An anchor or a tag comes before the scalar itself.
  while (raw() == '&' || (raw() == '!' && node.Tag() != "?")) {
    if (raw() == '!' && node.Tag() == "!") break;
    while (raw() != '\0' && !is_space(raw())) advance(at);
    skip_space();
  }
  char quote = '\0';
  if (raw() == '"' || raw() == '\'') {
    quote = raw();
    advance(at);
  } else if ((raw() == '|' || raw() == '>') && node.Tag() == "!") {
    while (raw() != '\0' && raw() != '\n') advance(at);
  }

  std::vector<SourceLocation> places;
  places.reserve(value.size() + 1);
  for (std::size_t i = 0; i < value.size();) {
    const char c = value[i];
    if (quote == '"' && raw() == '\\' && (raw(1) == '\n' || raw(1) == '\r')) {
      advance(at);
      skip_space();
    }
    if (!is_space(c) && is_space(raw())) skip_space();
    std::size_t raw_characters = raw() == c || is_space(raw()) ? 1 : 0;
    if (quote == '"' && raw() == '\\') {
      raw_characters = raw(1) == 'x' ? 4 : raw(1) == 'u' ? 6 : raw(1) == 'U' ? 10 : 2;
    } else if (quote == '\'' && raw() == '\'' && raw(1) == '\'') {
      raw_characters = 2;
    }
    // Every byte of a character of the value has that character's place.
    do {
      places.push_back(at.place);
      ++i;
    } while (i < value.size() && continues_character(value[i]));
    for (std::size_t k = 0; k < raw_characters; ++k) advance(at);
  }
  places.push_back(at.place);
  if (quote != '\0') {
    Position end = at;
    while (end.offset < text_.size() && text_[end.offset] != quote) advance(end);
    if (end.offset >= text_.size()) {
      throw SchemaError(
          error(node, "quoted text without an end", std::string("close it with ") + quote));
    }
  }
  return SourceText(value, path_, std::move(places), lines_);
}

std::vector<Field> YamlFile::fields(const YAML::Node& mapping, Diagnostics& diagnostics) const {
  std::vector<Field> result;
  std::map<std::string, SourceLocation> seen;
  for (const auto& pair : mapping) {
    if (!pair.first.IsScalar()) {
      diagnostics.add(error(pair.first, "expected a key, got " + kind_of(pair.first)));
      continue;
    }
    Field field;
    try {
      field.key.source = scalar(pair.first);
    } catch (const SchemaError& problem) {
      diagnostics.add(problem.diagnostic());
      continue;
    }
    field.key.text = field.key.source.text();
    field.value = pair.second;
    const auto [first, is_new] = seen.emplace(field.key.text, field.key.source.place(0));
    if (is_new) {
      result.push_back(std::move(field));
    } else {
      diagnostics.add(
          field.key.error("duplicate key '" + field.key.text + "'",
                          "the first is on line " + std::to_string(first->second.line)));
    }
  }
  return result;
}

SourceText YamlFile::text(const Field& field) const {
  if (field.value.IsScalar()) return scalar(field.value);
  if (field.value.IsNull()) {
    throw SchemaError(field.key.error("key '" + field.key.text + "' has no value",
                                      "give it one, or remove the key"));
  }
  throw SchemaError(error(field.value, "expected text as the value of '" + field.key.text +
                                           "', got " + kind_of(field.value)));
}

std::vector<Word> YamlFile::words(const Field& field, Diagnostics& diagnostics) const {
  if (!field.value.IsSequence()) return split_words(text(field));
  std::vector<Word> result;
  for (const YAML::Node& item : field.value) {
    if (!item.IsScalar()) {
      diagnostics.add(error(
          item, "expected a name in the list of '" + field.key.text + "', got " + kind_of(item)));
      continue;
    }
    for (Word& word : split_words(scalar(item))) result.push_back(std::move(word));
  }
  return result;
}

std::vector<Word> split_words(const SourceText& source) {
  const std::string& text = source.text();
  std::vector<Word> result;
  std::size_t begin = 0;
  while (true) {
    std::size_t end = std::min(text.find(',', begin), text.size());
    const std::size_t next = end + 1;
    while (begin < end && is_space(text[begin])) ++begin;
    while (end > begin && is_space(text[end - 1])) --end;
    result.push_back({text.substr(begin, end - begin), source, begin});
    if (next > text.size()) return result;
    begin = next;
  }
}

}  // namespace treadle::schemac
