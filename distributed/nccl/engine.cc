// SPDX-License-Identifier: Apache-2.0
#include "distributed/nccl/engine.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "distributed/nccl/channel.h"

namespace treadle::distributed {
namespace {

// The numbers of calls at the side that are no program's.
constexpr uint64_t kQuestion = uint64_t{1} << 63;
// How long the other ranks have to say that they are there.
constexpr milliseconds kAnswers(5000);

// A dtype as NCCL has it: complex numbers are two numbers.
struct Elements {
  NcclType type;
  size_t bytes;
};

std::optional<Elements> elements_of(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Bool:
    case ScalarType::UInt8:
      return Elements{NcclType::UInt8, 1};
    case ScalarType::Int8:
      return Elements{NcclType::Int8, 1};
    case ScalarType::Int32:
      return Elements{NcclType::Int32, 4};
    case ScalarType::UInt32:
      return Elements{NcclType::UInt32, 4};
    case ScalarType::Int64:
      return Elements{NcclType::Int64, 8};
    case ScalarType::UInt64:
      return Elements{NcclType::UInt64, 8};
    case ScalarType::Float16:
      return Elements{NcclType::Float16, 2};
    case ScalarType::BFloat16:
      return Elements{NcclType::BFloat16, 2};
    case ScalarType::Float32:
    case ScalarType::Complex64:
      return Elements{NcclType::Float32, 4};
    case ScalarType::Float64:
    case ScalarType::Complex128:
      return Elements{NcclType::Float64, 8};
    default:
      return {};
  }
}

NcclOp op_of(ReduceOp op, ScalarType dtype) {
  switch (op) {
    case ReduceOp::Average:
      return NcclOp::Average;
    case ReduceOp::Product:
      return NcclOp::Product;
    case ReduceOp::Min:
      return NcclOp::Min;
    case ReduceOp::Max:
      return NcclOp::Max;
    default:
      // A sum of truth values is "any of them".
      return dtype == ScalarType::Bool ? NcclOp::Max : NcclOp::Sum;
  }
}

// Whether all spans are one piece of equal parts.
bool are_adjacent(const std::vector<Span>& spans) {
  for (size_t i = 1; i < spans.size(); ++i)
    if (spans[i].bytes != spans[0].bytes || spans[i].data != spans[i - 1].data + spans[0].bytes)
      return false;
  return true;
}

// The bytes that a rank sends to another in functions whose sizes only those two know.
size_t bytes_to(const Call& call, int own, size_t peer) {
  const bool is_root = call.root == own;
  if (call.function == Function::AllToAll || (call.function == Function::Scatter && is_root))
    return call.inputs[peer].bytes;
  const bool takes = static_cast<int>(peer) == call.root;
  return call.function == Function::Gather && takes ? call.inputs[0].bytes : 0;
}
size_t bytes_from(const Call& call, int own, size_t peer) {
  const bool is_root = call.root == own;
  if (call.function == Function::AllToAll || (call.function == Function::Gather && is_root))
    return call.outputs[peer].bytes;
  const bool gives = static_cast<int>(peer) == call.root;
  return call.function == Function::Scatter && gives ? call.outputs[0].bytes : 0;
}

void send_and_receive(const Call& call, int own, int size, NcclComm comm, void* stream) {
  for (int peer = 0; peer < size; ++peer) {
    const auto place = static_cast<size_t>(peer);
    const size_t out = bytes_to(call, own, place), in = bytes_from(call, own, place);
    const char* const from = call.function == Function::Gather ? call.inputs[0].data
                             : out > 0                         ? call.inputs[place].data
                                                               : nullptr;
    char* const to = call.function == Function::Scatter ? call.outputs[0].data
                     : in > 0                           ? call.outputs[place].data
                                                        : nullptr;
    if (peer == own && from == to) continue;
    if (out > 0)
      nccl_check(nccl().Send(from, out, NcclType::UInt8, peer, comm, stream), "ncclSend");
    if (in > 0) nccl_check(nccl().Recv(to, in, NcclType::UInt8, peer, comm, stream), "ncclRecv");
  }
}

}  // namespace

Call at_the_side(const Call& call, Function function) {
  Call made;
  made.name = call.name;
  made.function = function;
  made.number = call.number;
  made.timeout = call.timeout;
  return made;
}

bool nccl_can_reduce(ReduceOp op, ScalarType dtype) {
  if (!elements_of(dtype)) return false;
  switch (op) {
    case ReduceOp::Sum:
      return true;
    case ReduceOp::Average:
      return dtype != ScalarType::Bool;
    case ReduceOp::Product:
    case ReduceOp::Min:
    case ReduceOp::Max:
      return !is_complex(dtype);
    case ReduceOp::PremulSum:
      return dtype >= ScalarType::Float16;
    default:
      return false;
  }
}

NcclEngine::NcclEngine(std::shared_ptr<Engine> side)
    : Engine(side->rank, side->size),
      side_(std::move(side)),
      channels_(2 * static_cast<size_t>(size)) {
  nccl();
}

NcclEngine::~NcclEngine() {
  abort();
  channels_.clear();
}

void NcclEngine::use_device(int index) {
  int before = -1;
  if (!device_.compare_exchange_strong(before, index) && before != index)
    throw Failure(
        Failure::Kind::Backend,
        "expected tensors on cuda:" + std::to_string(before) +
            ", the device of this process in the group, got cuda:" + std::to_string(index));
}

std::shared_ptr<void> NcclEngine::queued_work() {
  const int device = device_;
  if (device < 0) return nullptr;
  return event_in(device, current_stream({DeviceType::CUDA, static_cast<int8_t>(device)}));
}

void NcclEngine::require_open() const {
  if (is_aborted_) throw Failure(Failure::Kind::Aborted, "aborted");
  if (has_failed_) throw Failure(Failure::Kind::Network, "a call that not all ranks ended");
}

std::shared_ptr<Communicator> NcclEngine::made_communicator(int rank, int size, const NcclId& id) {
  auto made = std::make_shared<Communicator>(device_, rank, size, id);
  const std::lock_guard lock(mutex_);
  if (is_aborted_) made->abort();
  communicators_.push_back(made);
  return made;
}

void NcclEngine::connect(milliseconds timeout) {
  Call call;
  call.name = "init_process_group";
  call.number = kQuestion;
  call.timeout = timeout;
  connect_all(std::chrono::steady_clock::now() + timeout, call);
}

void NcclEngine::connect_all(Deadline end, const Call& call) {
  if (all_) return;
  NcclId id{};
  if (rank == 0) nccl_check(nccl().GetUniqueId(&id), "ncclGetUniqueId");
  Call side = at_the_side(call, Function::Broadcast);
  side.inputs = side.outputs = {{id.bytes, sizeof id}};
  side_->run(side);
  auto made = made_communicator(rank, size, id);
  made->connect(end);
  all_ = std::move(made);
}

bool NcclEngine::compare(const Call& call) {
  struct Note {
    uint64_t key, bytes, is_one_piece;
  };
  const auto ranks = static_cast<size_t>(size);
  std::vector<Note> mine(ranks), theirs(ranks);
  Call side = at_the_side(call, Function::AllToAll);
  for (size_t i = 0; i < ranks; ++i) {
    mine[i] = {call.fingerprint_of_all(), bytes_to(call, rank, i),
               are_adjacent(call.inputs) && are_adjacent(call.outputs)};
    side.inputs.push_back({reinterpret_cast<char*>(&mine[i]), sizeof(Note)});
    side.outputs.push_back({reinterpret_cast<char*>(&theirs[i]), sizeof(Note)});
  }
  side_->run(side);
  bool are_one_piece = true;
  int8_t fits = 1;
  for (size_t i = 0; i < ranks; ++i) {
    if (theirs[i].key != mine[i].key)
      throw Failure(Failure::Kind::Mismatch, "", static_cast<int>(i));
    are_one_piece = are_one_piece && theirs[i].is_one_piece != 0;
    fits = fits && theirs[i].bytes == bytes_from(call, rank, i);
  }
  // Sizes that two ranks alone know may be wrong for them alone.
  if (call.function == Function::Gather || call.function == Function::Scatter ||
      call.function == Function::AllToAll) {
    std::vector<int8_t> all_fit(ranks);
    side = at_the_side(call, Function::AllGather);
    side.inputs = {{reinterpret_cast<char*>(&fits), 1}};
    for (int8_t& each : all_fit) side.outputs.push_back({reinterpret_cast<char*>(&each), 1});
    side_->run(side);
    for (size_t i = 0; i < ranks; ++i)
      if (fits ? !all_fit[i] : theirs[i].bytes != bytes_from(call, rank, i))
        throw Failure(Failure::Kind::Mismatch, "", static_cast<int>(i));
  }
  return are_one_piece;
}

void NcclEngine::run(const Call& call) {
  require_open();
  try {
    if (call.function == Function::Barrier) wait_for(call.after, [this] { require_open(); });
    const bool are_one_piece = compare(call);
    if (call.function == Function::Barrier) return;
    const Deadline end = std::chrono::steady_clock::now() + call.timeout;
    try {
      connect_all(end, call);
      run_in(*all_, call, are_one_piece, end);
    } catch (const Failure& failure) {
      const Failure found = explained(call, failure);
      if (all_) all_->abort();
      throw found;
    }
  } catch (const Failure& failure) {
    if (failure.kind != Failure::Kind::Mismatch) has_failed_ = true;
    throw;
  }
}

Failure NcclEngine::explained(const Call& call, const Failure& failure) {
  if (is_aborted_ || failure.peer >= 0 || failure.kind == Failure::Kind::Aborted) return failure;
  Call side = at_the_side(call, Function::Barrier);
  side.number |= kQuestion;
  side.timeout = std::min(call.timeout, kAnswers);
  try {
    side_->run(side);
  } catch (const Failure& found) {
    if (found.peer >= 0) return Failure(found.kind, failure.what(), found.peer);
  }
  return failure;
}

void NcclEngine::run_in(Communicator& all, const Call& call, bool are_one_piece, Deadline end) {
  const bool reduces = call.function == Function::AllReduce || call.function == Function::Reduce ||
                       call.function == Function::ReduceScatter;
  const Elements elements =
      reduces ? elements_of(call.dtype).value() : Elements{NcclType::UInt8, 1};
  const NcclType type = elements.type;
  const bool scales = call.op == ReduceOp::PremulSum;
  const NcclOp op = scales ? all.premultiplied_sum(call.factor, type) : op_of(call.op, call.dtype);
  const auto count = [&](const Span& span) { return span.bytes / elements.bytes; };
  all.run(call.after, end, [&](NcclComm comm, void* stream) {
    const auto &in = call.inputs, &out = call.outputs;
    switch (call.function) {
      case Function::AllReduce:
        for (size_t i = 0; i < in.size(); ++i)
          nccl_check(
              nccl().AllReduce(in[i].data, out[i].data, count(in[i]), type, op, comm, stream),
              "ncclAllReduce");
        break;
      case Function::Reduce:
        nccl_check(
            nccl().Reduce(in[0].data, out[0].data, count(in[0]), type, op, call.root, comm, stream),
            "ncclReduce");
        break;
      case Function::Broadcast:
        nccl_check(nccl().Broadcast(out[0].data, out[0].data, count(out[0]), type, call.root, comm,
                                    stream),
                   "ncclBroadcast");
        break;
      case Function::AllGather:
        if (are_one_piece) {
          nccl_check(nccl().AllGather(in[0].data, out[0].data, count(in[0]), type, comm, stream),
                     "ncclAllGather");
          break;
        }
        for (size_t i = 0; i < out.size(); ++i)
          nccl_check(nccl().Broadcast(in[0].data, out[i].data, count(out[i]), type,
                                      static_cast<int>(i), comm, stream),
                     "ncclBroadcast");
        break;
      case Function::ReduceScatter:
        if (are_one_piece) {
          nccl_check(
              nccl().ReduceScatter(in[0].data, out[0].data, count(out[0]), type, op, comm, stream),
              "ncclReduceScatter");
          break;
        }
        for (size_t i = 0; i < in.size(); ++i)
          nccl_check(nccl().Reduce(in[i].data, out[0].data, count(in[i]), type, op,
                                   static_cast<int>(i), comm, stream),
                     "ncclReduce");
        break;
      default:
        send_and_receive(call, rank, size, comm, stream);
    }
  });
  if (scales) all.release(op);
}

std::unique_ptr<Message> NcclEngine::post(const Call& call) {
  require_open();
  const bool is_send = call.function == Function::Send;
  auto queued = std::make_shared<Queued>(call);
  const std::lock_guard lock(mutex_);
  auto& channel = channels_[2 * static_cast<size_t>(call.root) + (is_send ? 1 : 0)];
  if (!channel) channel = std::make_unique<Channel>(*this, call.root, is_send);
  channel->push(queued);
  return std::make_unique<Posted>(std::move(queued));
}

bool NcclEngine::flush(milliseconds timeout) {
  const Deadline end = std::chrono::steady_clock::now() + timeout;
  for (const auto& channel : channels_)
    if (channel && !channel->drain(end)) return false;
  const auto left =
      std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
  return side_->flush(std::max(left, milliseconds(0)));
}

void NcclEngine::abort() {
  is_aborted_ = true;
  side_->abort();
  const std::lock_guard lock(mutex_);
  for (const auto& each : communicators_)
    if (const auto communicator = each.lock()) communicator->abort();
}

}  // namespace treadle::distributed
