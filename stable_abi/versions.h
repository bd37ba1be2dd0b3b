// The versions of PyTorch that an extension may be built with.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stable_abi/boundary.h"

namespace treadle::stable_abi {

// RuntimeError for a number that is no version with a stable ABI: those from 2.9 on.
inline void check_version(uint64_t version, std::string_view name) {
  const auto major = version >> 56, minor = version >> 48 & 0xff;
  check<ErrorKind::Runtime>(major == TORCH_VERSION_MAJOR && minor >= 9, OpName(name),
                            "expected an extension that was built with PyTorch ",
                            TORCH_VERSION_MAJOR, ".9 or later of this major version, got version ",
                            major, ".", minor);
}

}  // namespace treadle::stable_abi
