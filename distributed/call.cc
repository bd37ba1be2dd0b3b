// SPDX-License-Identifier: Apache-2.0
#include "distributed/call.h"

#include <bit>

namespace treadle::distributed {

uint64_t Call::fingerprint() const {
  uint64_t found = mixed(number, static_cast<uint64_t>(function));
  found = mixed(found, static_cast<uint64_t>(dtype));
  switch (function) {
    case Function::AllReduce:
    case Function::Reduce:
      found = mixed(found, inputs[0].bytes);
      [[fallthrough]];
    case Function::ReduceScatter:
      found = mixed(found, static_cast<uint64_t>(op));
      found = mixed(found, std::bit_cast<uint64_t>(factor));
      break;
    case Function::Broadcast:
      found = mixed(found, outputs[0].bytes);
      break;
    case Function::Send:
    case Function::Receive:
      // Messages have no number: those of one tag come in order.
      found = mixed(static_cast<uint64_t>(Function::Send), static_cast<uint64_t>(dtype));
      return mixed(found, static_cast<uint64_t>(tag));
    default:
      break;
  }
  return mixed(found, static_cast<uint64_t>(root));
}

}  // namespace treadle::distributed
