// Checks the file of a shared library before the system maps it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace treadle::plugin {

// RuntimeError if the file is shorter than its own headers say, for example after an interrupted
// copy. The system would map such a file, and end the process at the read of a missing part. A file
// that is no shared library, or that cannot be read, is accepted here; opening it will fail.
void require_whole_library(const std::string& path);

}  // namespace treadle::plugin
