// Compares the length of an ELF file with the parts that its headers list.
//
// SPDX-License-Identifier: Apache-2.0
#include "plugin/host/library_file.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <vector>

#include "core/base/error.h"

namespace treadle::plugin {
namespace {

// The end of a part of the file; a number that overflows is past any end.
uint64_t end_of(uint64_t offset, uint64_t length) {
  uint64_t end = 0;
  return __builtin_add_overflow(offset, length, &end) ? UINT64_MAX : end;
}

}  // namespace

void require_whole_library(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return;
  const auto length = static_cast<uint64_t>(file.tellg());
  Elf64_Ehdr header;
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
    return;
  uint64_t needed = end_of(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr));
  needed = std::max(needed, end_of(header.e_shoff, uint64_t{header.e_shnum} * header.e_shentsize));
  if (needed <= length) {
    std::vector<Elf64_Phdr> segments(header.e_phnum);
    file.seekg(static_cast<std::streamoff>(header.e_phoff));
    file.read(reinterpret_cast<char*>(segments.data()),
              static_cast<std::streamsize>(segments.size() * sizeof(Elf64_Phdr)));
    // Segments that are not loaded may end after the file, like the one that becomes read-only.
    for (const Elf64_Phdr& s : segments) {
      if (s.p_type == PT_LOAD) needed = std::max(needed, end_of(s.p_offset, s.p_filesz));
    }
  }
  check<ErrorKind::Runtime>(needed <= length, OpName(path), "expected a whole shared library, of ",
                            needed, " bytes or more, got one that ends after ", length);
}

}  // namespace treadle::plugin
