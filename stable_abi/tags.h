// The tags of operators that extensions may give: numbers, which torch_tag_NAME() tells.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::stable_abi {

// ValueError for an unknown number.
const char* name_of_tag(int32_t number);

}  // namespace treadle::stable_abi
