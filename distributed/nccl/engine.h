// The engine "nccl": functions between processes, each with a GPU, by those of NCCL.
//
// NCCL trusts that all ranks make the same calls, and waits for ever where they do not. So the
// ranks compare their calls first, through an engine for the CPU beside it: a rank that does not
// come, or calls something else, has a name. Then NCCL runs, in a stream of its own, behind the
// work that the program had queued when it made the call.
//
// Messages of two ranks have a communicator for each direction. They go in the order in which they
// were begun, each when both ranks have come to it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "distributed/engine.h"
#include "distributed/nccl/communicator.h"

namespace treadle::distributed {

// Whether NCCL has the operation for a dtype.
bool nccl_can_reduce(ReduceOp op, ScalarType dtype);

// A call of the engine for the CPU, about a call of this one.
Call at_the_side(const Call& call, Function function);

class NcclEngine final : public Engine {
 public:
  // `side` connects the same ranks.
  explicit NcclEngine(std::shared_ptr<Engine> side);
  ~NcclEngine() override;

  // Chooses the device of this rank, once.
  void use_device(int index);
  // Connects all ranks, which come here together; the first call does it otherwise.
  void connect(milliseconds timeout);

  std::string name() const override { return "nccl"; }
  std::shared_ptr<void> queued_work() override;
  void run(const Call& call) override;
  std::unique_ptr<Message> send(const Call& call) override { return post(call); }
  std::unique_ptr<Message> receive(const Call& call) override { return post(call); }
  bool flush(milliseconds timeout) override;
  void abort() override;

 private:
  class Channel;
  class Posted;

  void require_open() const;
  // Whether the memory of each rank is one piece. NCCL has other functions then, so all ranks must
  // know it of all.
  bool compare(const Call& call);
  void connect_all(Deadline end, const Call& call);
  std::shared_ptr<Communicator> made_communicator(int rank, int size, const NcclId& id);
  void run_in(Communicator& all, const Call& call, bool are_one_piece, Deadline end);
  // The failure with the rank that is at fault, where the others can say so.
  Failure explained(const Call& call, const Failure& failure);
  std::unique_ptr<Message> post(const Call& call);

  const std::shared_ptr<Engine> side_;
  std::atomic<int> device_ = -1;
  std::atomic<bool> is_aborted_ = false, has_failed_ = false;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Communicator>> communicators_;  // all, for abort()
  std::vector<std::unique_ptr<Channel>> channels_;          // two for each rank; null: not used
  std::shared_ptr<Communicator> all_;                       // of all ranks; null: not yet connected
};

}  // namespace treadle::distributed
