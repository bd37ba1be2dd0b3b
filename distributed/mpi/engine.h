// The engine "mpi": functions between processes, by those of MPI.
//
// Before each collective function the ranks compare fingerprints of their calls. This ends within
// the timeout, and a rank that calls something else is an error in all of them; then MPI's own
// function runs. Values are reduced by Treadle's code, pair by pair: one result for all dtypes, the
// same on all ranks.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "distributed/engine.h"
#include "distributed/mpi/abi.h"
#include "distributed/reduction.h"

namespace treadle::distributed {

// A reduction of two values in MPI's form. The numbers are those of ReduceOp and ScalarType.
template <class Abi, int op, int dtype>
void mpi_step(void* in, void* inout, int* count, typename Abi::Datatype*) {
  const auto type = static_cast<ScalarType>(dtype);
  reduce(static_cast<ReduceOp>(op), type, 1, 1, {in, inout}, inout,
         static_cast<size_t>(*count) * element_size(type));
}

// State that all groups share: MPI itself, the datatypes and operations made so far.
template <class Abi>
class MpiWorld {
 public:
  using Functions = Mpi<Abi>;

  explicit MpiWorld(void* library) : mpi(library) {
    int is_there = 0;
    check(mpi.initialized(&is_there), "MPI_Initialized");
    constexpr int kMultiple = 3;
    int level = 0;
    if (is_there) {
      check(mpi.query_thread(&level), "MPI_Query_thread");
    } else {
      check(mpi.init_thread(nullptr, nullptr, kMultiple, &level), "MPI_Init_thread");
      is_ours_ = true;
    }
    if (level < kMultiple)
      throw Failure(Failure::Kind::Backend,
                    "expected MPI with MPI_THREAD_MULTIPLE, got level " + std::to_string(level));
    check(mpi.comm_rank(mpi.world, &rank), "MPI_Comm_rank");
    check(mpi.comm_size(mpi.world, &size), "MPI_Comm_size");
    check(mpi.comm_set_errhandler(mpi.world, mpi.errors_return), "MPI_Comm_set_errhandler");
    int* limit = nullptr;
    int is_set = 0;
    check(mpi.comm_get_attr(mpi.world, Abi::kTagLimit, &limit, &is_set), "MPI_Comm_get_attr");
    tag_limit = is_set ? *limit : 32767;
  }

  void finish() {
    int is_over = 0;
    if (is_ours_ && mpi.finalized(&is_over) == 0 && !is_over) mpi.finalize();
  }
  bool is_over() {
    int over = 0;
    return mpi.finalized(&over) != 0 || over;
  }
  void check(int code, const char* function) {
    if (code == 0) return;
    char text[1024] = {};
    int length = 0;
    if (mpi.error_string(code, text, &length) != 0) length = 0;
    throw Failure(Failure::Kind::Backend, std::string("expected success of ") + function +
                                              ", got " + std::string(text, text + length));
  }
  // A datatype of so many bytes.
  typename Functions::Type type_of(size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto [place, is_new] = types_.try_emplace(bytes);
    if (is_new) {
      check(mpi.type_contiguous(static_cast<int>(bytes), mpi.byte, &place->second),
            "MPI_Type_contiguous");
      check(mpi.type_commit(&place->second), "MPI_Type_commit");
    }
    return place->second;
  }
  typename Functions::Op op_of(ReduceOp op, ScalarType dtype) {
    const std::lock_guard lock(mutex_);
    auto [place, is_new] = ops_.try_emplace({op, dtype});
    if (is_new)
      check(mpi.op_create(step_of(op, dtype), commutes(op, dtype), &place->second),
            "MPI_Op_create");
    return place->second;
  }

  Functions mpi;
  int rank = 0, size = 1, tag_limit = 32767;

 private:
  static constexpr int kOps = 9;
  // The lesser of 0 and -0, or of two NaNs, is the first: such pairs keep their order.
  static int commutes(ReduceOp op, ScalarType dtype) {
    const bool has_zeros = dtype >= ScalarType::Float16;
    return !(has_zeros && (op == ReduceOp::Min || op == ReduceOp::Max));
  }
  static typename Functions::Step step_of(ReduceOp op, ScalarType dtype) {
    return []<int... numbers>(std::integer_sequence<int, numbers...>, int number) {
      constexpr typename Functions::Step steps[] = {
          &mpi_step<Abi, numbers / kNumScalarTypes, numbers % kNumScalarTypes>...};
      return steps[number];
    }
    (std::make_integer_sequence<int, kOps * kNumScalarTypes>{},
     static_cast<int>(op) * kNumScalarTypes + static_cast<int>(dtype));
  }

  bool is_ours_ = false;
  std::mutex mutex_;
  std::map<size_t, typename Functions::Type> types_;
  std::map<std::pair<ReduceOp, ScalarType>, typename Functions::Op> ops_;
};

template <class Abi>
class MpiEngine final : public Engine {
 public:
  using Functions = Mpi<Abi>;

  MpiEngine(MpiWorld<Abi>& world, typename Functions::Comm communicator, int rank, int size)
      : Engine(rank, size), world_(world), mpi_(world.mpi), comm_(communicator) {
    world_.check(mpi_.comm_set_errhandler(comm_, mpi_.errors_return), "MPI_Comm_set_errhandler");
  }
  // The communicator stays: to free one, all ranks must come together.

  std::string name() const override { return "mpi"; }
  void run(const Call& call) override;
  std::unique_ptr<Message> send(const Call& call) override;
  std::unique_ptr<Message> receive(const Call& call) override;
  bool flush(milliseconds) override { return true; }
  void abort() override { is_aborted_ = true; }

 private:
  class Posted;
  // Waits for a request, which ends at the deadline, by an abort, or when `is_cancelled`.
  typename Functions::Status finish(typename Functions::Request& request, milliseconds timeout,
                                    const std::atomic<bool>* is_cancelled, int peer, bool is_send);
  void compare(const Call& call);
  void run_compared(const Call& call);
  int tag_of(const Call& call) const;
  void all_reduce(const Call& call, int root);
  void reduce_scatter(const Call& call);
  void move(const Call& call);

  MpiWorld<Abi>& world_;
  Functions& mpi_;
  typename Functions::Comm comm_;
  std::atomic<bool> is_aborted_ = false;
  std::atomic<bool> has_failed_ = false;
};

}  // namespace treadle::distributed
