// NCCL, NVIDIA's communication between GPUs, found at run time. Treadle is not compiled against it:
// what of its binary interface is needed stands here.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "distributed/call.h"

namespace treadle::distributed {

enum class NcclResult : int { Success = 0, InProgress = 7 };
enum class NcclType : int {
  Int8,
  UInt8,
  Int32,
  UInt32,
  Int64,
  UInt64,
  Float16,
  Float32,
  Float64,
  BFloat16,
};
// Larger numbers are operations that a communicator made.
enum class NcclOp : int { Sum, Product, Max, Min, Average };

struct NcclId {
  char bytes[128];
};
using NcclComm = struct ncclComm*;

// The settings of NCCL 2.14; later releases choose those that they have beside them.
struct NcclConfig {
  size_t size = offsetof(NcclConfig, blocking) + sizeof(int);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;
};

// Its functions, by their names without "nccl".
struct Nccl {
  NcclResult (*GetVersion)(int* version);
  const char* (*GetErrorString)(NcclResult result);
  NcclResult (*GetUniqueId)(NcclId* id);
  NcclResult (*CommInitRankConfig)(NcclComm* made, int size, NcclId id, int rank,
                                   NcclConfig* config);
  NcclResult (*CommGetAsyncError)(NcclComm comm, NcclResult* found);
  NcclResult (*CommAbort)(NcclComm comm);
  NcclResult (*GroupStart)();
  NcclResult (*GroupEnd)();
  NcclResult (*AllReduce)(const void* in, void* out, size_t count, NcclType type, NcclOp op,
                          NcclComm comm, void* stream);
  NcclResult (*Reduce)(const void* in, void* out, size_t count, NcclType type, NcclOp op, int root,
                       NcclComm comm, void* stream);
  NcclResult (*Broadcast)(const void* in, void* out, size_t count, NcclType type, int root,
                          NcclComm comm, void* stream);
  NcclResult (*AllGather)(const void* in, void* out, size_t count, NcclType type, NcclComm comm,
                          void* stream);
  NcclResult (*ReduceScatter)(const void* in, void* out, size_t count, NcclType type, NcclOp op,
                              NcclComm comm, void* stream);
  NcclResult (*Send)(const void* in, size_t count, NcclType type, int peer, NcclComm comm,
                     void* stream);
  NcclResult (*Recv)(void* out, size_t count, NcclType type, int peer, NcclComm comm, void* stream);
  NcclResult (*RedOpCreatePreMulSum)(NcclOp* made, void* factor, NcclType type, int residence,
                                     NcclComm comm);
  NcclResult (*RedOpDestroy)(NcclOp op, NcclComm comm);
};

// Loads the library. Throws Failure that says what was looked for, or what a release lacks.
const Nccl& nccl();
// "2.28.9".
std::string nccl_version();
// Throws Failure for a result that is an error of the function. Calls go on where it is InProgress.
void nccl_check(NcclResult result, const char* function);

}  // namespace treadle::distributed
