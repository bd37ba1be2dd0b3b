// Running a group: its nodes become a program over tiles.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/fusion/partition.h"

namespace treadle::fusion {

// Computes the nodes of the group, whose sources outside of it are in memory. Each node is then
// computed and out of the list of those that are not. If memory ends, nothing has changed.
void run(const Group& group);

}  // namespace treadle::fusion
