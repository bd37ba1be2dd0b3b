// SPDX-License-Identifier: Apache-2.0
#include "distributed/nccl/communicator.h"

#include <cstring>
#include <thread>
#include <utility>

#include "core/base/half.h"

namespace treadle::distributed {
namespace {

// How long a wait keeps the processor before it sleeps between looks.
constexpr std::chrono::microseconds kEager(200), kSleep(20);

Backend& backend() { return require_backend(DeviceType::CUDA); }

void pause(Deadline start) {
  if (std::chrono::steady_clock::now() - start < kEager)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(kSleep);
}

}  // namespace

std::shared_ptr<void> event_in(int device, uint64_t stream) {
  std::shared_ptr<void> event(backend().create_event(device, false),
                              [device](void* made) { backend().destroy_event(device, made); });
  backend().record_event(device, event.get(), stream);
  return event;
}

void wait_for(const std::shared_ptr<void>& event, const std::function<void()>& check) {
  const auto start = std::chrono::steady_clock::now();
  while (event && !backend().event_complete(event.get())) {
    check();
    pause(start);
  }
}

Communicator::Communicator(int device, int rank, int size, const NcclId& id)
    : device_(device),
      rank_(rank),
      size_(size),
      id_(id),
      stream_(backend().create_stream(device, 0)) {}

Communicator::~Communicator() {
  abort();
  backend().destroy_stream(device_, stream_);
}

NcclComm Communicator::open() {
  if (is_aborted_) throw Failure(Failure::Kind::Aborted, "aborted");
  return comm_;
}

void Communicator::ask(Deadline end, const std::function<bool(NcclResult)>& is_done) {
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      NcclResult state = NcclResult::Success;
      nccl_check(nccl().CommGetAsyncError(open(), &state), "ncclCommGetAsyncError");
      nccl_check(state, "a call of NCCL");
      if (is_done(state)) return;
    }
    if (std::chrono::steady_clock::now() > end) throw Failure(Failure::Kind::Timeout, "too late");
    pause(start);
  }
}

void Communicator::connect(Deadline end) {
  const OnDevice guard(device_);
  {
    const std::lock_guard lock(mutex_);
    open();
    NcclConfig config;
    nccl_check(nccl().CommInitRankConfig(&comm_, size_, id_, rank_, &config),
               "ncclCommInitRankConfig");
  }
  ask(end, [](NcclResult state) { return state == NcclResult::Success; });
}

void Communicator::run(const std::shared_ptr<void>& after, Deadline end, const Calls& calls) {
  const OnDevice guard(device_);
  if (after) backend().wait_event(device_, after.get(), stream_);
  {
    const std::lock_guard lock(mutex_);
    const NcclComm comm = open();
    nccl_check(nccl().GroupStart(), "ncclGroupStart");
    try {
      calls(comm, reinterpret_cast<void*>(stream_));
    } catch (...) {
      nccl().GroupEnd();
      throw;
    }
    nccl_check(nccl().GroupEnd(), "ncclGroupEnd");
  }
  // An event is behind the calls when NCCL has queued them.
  ask(end, [](NcclResult state) { return state == NcclResult::Success; });
  const auto done = event_in(device_, stream_);
  ask(end, [&](NcclResult) { return backend().event_complete(done.get()); });
}

NcclOp Communicator::premultiplied_sum(double factor, NcclType type) {
  char value[sizeof(double)];
  const auto store = [&value](auto number) { std::memcpy(value, &number, sizeof number); };
  const auto rounded = static_cast<float>(factor);
  if (type == NcclType::Float64) store(factor);
  if (type == NcclType::Float32) store(rounded);
  if (type == NcclType::Float16) store(Half(rounded));
  if (type == NcclType::BFloat16) store(BFloat16(rounded));
  constexpr int kInMemoryOfTheHost = 1;
  const std::lock_guard lock(mutex_);
  NcclOp made{};
  nccl_check(nccl().RedOpCreatePreMulSum(&made, value, type, kInMemoryOfTheHost, open()),
             "ncclRedOpCreatePreMulSum");
  return made;
}

void Communicator::release(NcclOp op) {
  const std::lock_guard lock(mutex_);
  nccl_check(nccl().RedOpDestroy(op, open()), "ncclRedOpDestroy");
}

void Communicator::abort() {
  const std::lock_guard lock(mutex_);
  is_aborted_ = true;
  if (comm_ != nullptr) nccl().CommAbort(std::exchange(comm_, nullptr));
}

}  // namespace treadle::distributed
