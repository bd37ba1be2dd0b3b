// Checks the file of a shared library before the system maps it.
#pragma once

#include <string>

namespace treadle::plugin {

// RuntimeError where the file is shorter than its own headers say, as after a copy that broke off:
// the system would map it all the same, and end the process where a missing part is read. A file
// that is no shared library, or that cannot be read, is left to the one who opens it to refuse.
void require_whole_library(const std::string& path);

}  // namespace treadle::plugin
