// A YAML file whose scalars know where each of their characters stands in the file.
//
// yaml-cpp says where a scalar begins. The text between there and a character inside it (quotes,
// escapes, folded lines, a block's indentation) is found by walking the raw text beside the
// scalar's value.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <yaml-cpp/yaml.h>

#include <memory>
#include <string>
#include <vector>

#include "codegen/schemac/diagnostics.h"
#include "core/schema/diagnostic.h"

namespace treadle::schemac {

// A piece of a scalar, such as one name of a list separated by commas.
struct Word {
  std::string text;
  schema::SourceText source;
  std::size_t offset = 0;

  schema::Diagnostic error(std::string message, std::string hint = "") const {
    return source.diagnostic(offset, std::move(message), std::move(hint));
  }
};

// One "key: value" of a mapping.
struct Field {
  Word key;
  YAML::Node value;
};

class YamlFile {
 public:
  // Throws SchemaError for a text that is not YAML.
  YamlFile(std::string path, std::string text);

  const std::string& path() const { return path_; }
  const YAML::Node& root() const { return root_; }

  schema::Diagnostic error(const YAML::Node& at, std::string message, std::string hint = "") const;

  // The value of a scalar node.
  schema::SourceText scalar(const YAML::Node& node) const;

  // The fields of a mapping in order. Keys that are no plain text, or appear twice, are reported
  // and left out.
  std::vector<Field> fields(const YAML::Node& mapping, Diagnostics& diagnostics) const;

  // The names of a list: "a, b", [a, b] or a block list. Whatever is not a name is reported and
  // left out.
  std::vector<Word> words(const Field& field, Diagnostics& diagnostics) const;

  // The heading that an entry stands under: "Pointwise" of the comment "# ---- Pointwise ----".
  std::string section(const YAML::Node& entry) const;

  // The text of a field that must be a scalar; throws SchemaError if it is not.
  schema::SourceText text(const Field& field) const;

 private:
  struct Position {
    std::size_t offset = 0;
    schema::SourceLocation place;
  };
  Position position(const YAML::Mark& mark) const;
  void advance(Position& position) const;

  std::string path_;
  std::string text_;
  std::vector<std::size_t> line_starts_;
  std::shared_ptr<const std::vector<std::string>> lines_;
  YAML::Node root_;
};

// The pieces of a text between its commas, without the white space around them.
std::vector<Word> split_words(const schema::SourceText& source);

}  // namespace treadle::schemac
