// FaultRecord: a kernel's record for the host of a wrong value in an argument, such as an index out
// of range. The compilers of the host, of .cu files and of generated kernels read this header.
//
// The first thread that finds a fault claims the record and fills it. The kernel continues or ends,
// but never stops the device. The host reads the record where it waits (faults.h) and raises the
// error.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace treadle::cuda {

enum FaultKind : int {
  kNoFault = 0,
  kZeroDivisor = 1,      // "WHO: expected a non-zero divisor, got 0"
  kIndexOutOfRange = 2,  // "WHO: expected index in [LOW, HIGH), got index = VALUE": values
  kOtherFault = 3,       // "WHO: expected arguments that it is defined for"
  // "WHO: expected target in [0, HIGH) or ignore_index = LOW, got VALUE"
  kTargetOutOfRange = 4,
  // "WHO: expected index in [LOW, HIGH) for dimension DIM, got index = VALUE"
  kIndexOutOfDim = 5,
  kPivotOutOfRange = 6,  // "WHO: expected pivots in [LOW, HIGH], got VALUE"
  kWrongNumber = 7,      // "WHO: expected WHAT, got NUMBER": an Expectation, the number's bits
  // "WHO: expected at least LOW weights > 0 to draw from without replacement, got VALUE"
  kTooFewWeights = 8,
  // "WHO: expected offsets that do not fall and stay within HIGH indices, got VALUE after LOW"
  kOffsetOutOfOrder = 9,
  kFirstOffset = 10,  // "WHO: expected offsets that begin with 0, got VALUE"
};

// The expected property of a number.
enum Expectation : int {
  kProbabilities = 0,  // "probabilities in [0, 1]"
  kRates = 1,          // "finite rates >= 0"
  kCounts = 2,         // "counts in [0, 2^53]"
  kWeights = 3,        // "finite weights >= 0"
  kPositiveSum = 4,    // "weights with a sum > 0": the sum
};

struct FaultRecord {
  int kind;
  char who[60];         // the operator's name
  long long values[4];  // low, high, value, dim
};

// The address for a kernel's fault: `claim` is device memory that is 0, `record` is host memory.
struct FaultPlace {
  unsigned* claim;
  FaultRecord* record;
};

#if defined(__CUDACC__) || defined(TREADLE_EMULATED)
// Fills the record, unless another thread has.
inline __device__ void record_fault(const FaultPlace& place, FaultKind kind, const char* who,
                                    long long low = 0, long long high = 0, long long value = 0,
                                    long long dim = 0) {
  if (place.claim == nullptr || atomicExch(place.claim, 1u) != 0) return;
  volatile FaultRecord* const record = place.record;
  int i = 0;
  for (; i + 1 < static_cast<int>(sizeof(record->who)) && who[i] != 0; ++i) record->who[i] = who[i];
  record->who[i] = 0;
  record->values[0] = low;
  record->values[1] = high;
  record->values[2] = value;
  record->values[3] = dim;
  __threadfence_system();
  record->kind = kind;
}
inline __device__ void record_wrong_number(const FaultPlace& place, Expectation what,
                                           const char* who, double number) {
  record_fault(place, kWrongNumber, who, what, __double_as_longlong(number));
}
#endif

}  // namespace treadle::cuda
