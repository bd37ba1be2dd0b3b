// A call of a communication function: what it does, on which memory. Its fingerprint is what the
// processes must agree on; a message of one call never reaches another.
//
//   Call call{.function = Function::AllReduce, .dtype = ScalarType::Float32, .op = ReduceOp::Sum};
//   call.inputs = call.outputs = {{data, bytes}};
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/scalar_type.h"

namespace treadle::distributed {

using std::chrono::milliseconds;

enum class Function : uint8_t {
  AllReduce,
  Broadcast,
  Reduce,
  AllGather,
  Gather,
  Scatter,
  ReduceScatter,
  AllToAll,
  Barrier,
  Send,
  Receive,
};

// The numbers are those of the Python enumeration ReduceOp.
enum class ReduceOp : uint8_t {
  Sum,
  Average,
  Product,
  Min,
  Max,
  BitAnd,
  BitOr,
  BitXor,
  PremulSum,
};

// Contiguous memory.
struct Span {
  char* data;
  size_t bytes;
};

inline constexpr int kAnyRank = -1;

// Functions between all pairs have one span for each rank; the others have one span. NCCL reduces
// several spans in one call.
struct Call {
  std::string name;  // the function that the program called
  Function function = Function::Barrier;
  ScalarType dtype = ScalarType::UInt8;
  ReduceOp op = ReduceOp::Sum;
  double factor = 1;  // of PremulSum
  int root = 0;       // or the other rank of a message; kAnyRank to receive from any
  int64_t tag = 0;    // of a message
  uint64_t number = 0;
  milliseconds timeout{0};
  std::vector<Span> inputs, outputs;
  std::shared_ptr<void> after;  // see Engine::queued_work()

  // The same in all processes whose calls belong together, different for others. Functions whose
  // sizes may differ between pairs of ranks leave the sizes out.
  uint64_t fingerprint() const;
  // The same, with the sizes of all ranks where each rank knows them.
  uint64_t fingerprint_of_all() const;

  // Whether data of other ranks comes to memory that is still to be sent. The input and the output
  // of rank `own`, this one, may be the same memory; none may with kAnyRank.
  bool has_overlap(int own) const;
  // The call with inputs in `copies`.
  Call with_copies(std::vector<char>& copies) const;
};

// Mixes a value into a fingerprint.
constexpr uint64_t mixed(uint64_t fingerprint, uint64_t value) {
  uint64_t z = (fingerprint ^ value) + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Why a call did not succeed.
class Failure : public std::runtime_error {
 public:
  enum class Kind { Network, Backend, Timeout, Aborted, Mismatch };
  Failure(Kind kind, const std::string& reason, int peer = kAnyRank, bool is_send = false)
      : std::runtime_error(reason), kind(kind), peer(peer), is_send(is_send) {}
  Kind kind;
  int peer;      // the rank in the group that did not do its part, where it is known
  bool is_send;  // whether data was to go there
};

}  // namespace treadle::distributed
