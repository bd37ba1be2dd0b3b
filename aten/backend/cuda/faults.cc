// Makes and reads the records.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/faults.h"

#include <bit>

#include "aten/backend/cuda/calls.h"
#include "aten/backend/cuda/device_guard.h"
#include "aten/backend/cuda/outside_capture.h"
#include "core/base/error.h"

namespace treadle::cuda {
namespace {

[[noreturn]] void raise(const FaultRecord& fault) {
  switch (fault.kind) {
    case kZeroDivisor:
      fail<ErrorKind::Runtime>(OpName(fault.who), "expected a non-zero divisor, got 0");
    case kIndexOutOfRange:
      fail<ErrorKind::Index>(OpName(fault.who), "expected index in [", int64_t{fault.values[0]},
                             ", ", int64_t{fault.values[1]},
                             "), got index = ", int64_t{fault.values[2]});
    case kTargetOutOfRange:
      fail<ErrorKind::Index>(OpName(fault.who), "expected target in [0, ", int64_t{fault.values[1]},
                             ") or ignore_index = ", int64_t{fault.values[0]}, ", got ",
                             int64_t{fault.values[2]});
    case kIndexOutOfDim:
      fail<ErrorKind::Index>(OpName(fault.who), "expected index in [", int64_t{fault.values[0]},
                             ", ", int64_t{fault.values[1]}, ") for dimension ",
                             int64_t{fault.values[3]}, ", got index = ", int64_t{fault.values[2]});
    case kPivotOutOfRange:
      fail<ErrorKind::Value>(OpName(fault.who), "expected pivots in [", int64_t{fault.values[0]},
                             ", ", int64_t{fault.values[1]}, "], got ", int64_t{fault.values[2]});
    case kWrongNumber: {
      constexpr const char* kWhat[] = {"probabilities in [0, 1], got ", "finite rates >= 0, got ",
                                       "counts in [0, 2^53], got ", "finite weights >= 0, got ",
                                       "weights with a sum > 0, got a sum of "};
      fail<ErrorKind::Runtime>(OpName(fault.who), "expected ", kWhat[fault.values[0]],
                               std::bit_cast<double>(fault.values[1]));
    }
    case kFirstOffset:
      fail<ErrorKind::Runtime>(OpName(fault.who), "expected offsets that begin with 0, got ",
                               int64_t{fault.values[2]});
    case kTooFewWeights:
      fail<ErrorKind::Runtime>(OpName(fault.who), "expected at least ", int64_t{fault.values[0]},
                               " weights > 0 to draw from without replacement, got ",
                               int64_t{fault.values[2]});
    case kOffsetOutOfOrder:
      fail<ErrorKind::Runtime>(OpName(fault.who),
                               "expected offsets that do not fall and stay within ",
                               int64_t{fault.values[1]}, " indices, got ", int64_t{fault.values[2]},
                               " after ", int64_t{fault.values[0]});
    default:
      fail<ErrorKind::Runtime>(OpName(fault.who), "expected arguments that it is defined for");
  }
}

}  // namespace

FaultPlace Faults::place(int device) {
  const std::lock_guard lock(mutex_);
  if (devices_.size() <= static_cast<size_t>(device))
    devices_.resize(static_cast<size_t>(device) + 1);
  Device& d = devices_[static_cast<size_t>(device)];
  if (d.seen) return d.place;
  const DeviceGuard guard(device);
  const OutsideCapture outside;
  void *claim = nullptr, *record = nullptr, *there = nullptr;
  succeed(calls().malloc(&claim, sizeof(unsigned)), "making an error record");
  succeed(calls().memset_async(claim, 0, sizeof(unsigned), nullptr), "making an error record");
  succeed(calls().stream_synchronize(nullptr), "making an error record");
  succeed(calls().host_alloc(&record, sizeof(FaultRecord), cudaHostAllocMapped),
          "making an error record");
  succeed(calls().host_get_device_pointer(&there, record, 0), "making an error record");
  d.seen = new (record) FaultRecord{};
  d.place = {static_cast<unsigned*>(claim), static_cast<FaultRecord*>(there)};
  return d.place;
}

bool Faults::take(int device, FaultRecord& found) {
  const std::lock_guard lock(mutex_);
  if (devices_.size() <= static_cast<size_t>(device)) return false;
  Device& d = devices_[static_cast<size_t>(device)];
  if (!d.seen || static_cast<volatile FaultRecord*>(d.seen)->kind == kNoFault) return false;
  found = *d.seen;
  found.who[sizeof found.who - 1] = 0;
  *d.seen = FaultRecord{};
  const DeviceGuard guard(device);
  succeed(calls().memset_async(d.place.claim, 0, sizeof(unsigned), nullptr),
          "clearing the error record");
  succeed(calls().stream_synchronize(nullptr), "clearing the error record");
  return true;
}

void Faults::raise(int device) {
  FaultRecord found;
  if (take(device, found)) cuda::raise(found);
}

void Faults::raise_any() {
  size_t count;
  {
    const std::lock_guard lock(mutex_);
    count = devices_.size();
  }
  for (size_t i = 0; i < count; ++i) raise(static_cast<int>(i));
}

Faults& faults() {
  static auto* faults = new Faults;
  return *faults;
}

}  // namespace treadle::cuda
