// SPDX-License-Identifier: Apache-2.0
#include "distributed/call.h"

#include <bit>
#include <cstring>

namespace treadle::distributed {

uint64_t Call::fingerprint() const {
  uint64_t found = mixed(number, static_cast<uint64_t>(function));
  found = mixed(found, static_cast<uint64_t>(dtype));
  switch (function) {
    case Function::AllReduce:
    case Function::Reduce:
      for (const Span& each : inputs) found = mixed(found, each.bytes);
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

uint64_t Call::fingerprint_of_all() const {
  uint64_t found = fingerprint();
  if (function == Function::AllGather)
    for (const Span& each : outputs) found = mixed(found, each.bytes);
  if (function == Function::ReduceScatter)
    for (const Span& each : inputs) found = mixed(found, each.bytes);
  return found;
}

bool Call::has_overlap(int own) const {
  if (function < Function::AllGather || function > Function::AllToAll) return false;
  const auto is_own = [own](const std::vector<Span>& spans, size_t i) {
    return spans.size() == 1 || (own >= 0 && i == static_cast<size_t>(own));
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t k = 0; k < outputs.size(); ++k) {
      const Span &in = inputs[i], &out = outputs[k];
      // Addresses of different tensors are compared as numbers.
      const auto a = reinterpret_cast<uintptr_t>(in.data),
                 b = reinterpret_cast<uintptr_t>(out.data);
      if (in.bytes == 0 || out.bytes == 0 || a >= b + out.bytes || b >= a + in.bytes) continue;
      if (own >= 0 && a == b && is_own(inputs, i) && is_own(outputs, k)) continue;
      return true;
    }
  }
  return false;
}

Call Call::with_copies(std::vector<char>& copies) const {
  size_t bytes = 0;
  for (const Span& each : inputs) bytes += each.bytes;
  copies.resize(bytes);
  Call made = *this;
  char* place = copies.data();
  for (Span& each : made.inputs) {
    if (each.bytes > 0) std::memcpy(place, each.data, each.bytes);
    each.data = place;
    place += each.bytes;
  }
  return made;
}

}  // namespace treadle::distributed
