// The collective functions, as messages between the ranks of a group.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "distributed/call.h"
#include "distributed/gloo/connection.h"

namespace treadle::distributed {

void run_collective(Connection& connection, const Call& call);

}  // namespace treadle::distributed
