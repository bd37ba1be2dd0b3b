// FaultRecord: what a kernel leaves for the host where an argument's values are wrong, such as an
// index out of range. Seen by the compilers of the host, of .cu files and of generated kernels.
//
// The first thread that finds a fault claims the record and fills it; a kernel goes on or ends, but
// never stops the device. The host reads it where it waits (faults.h) and raises what it says.
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
};

struct FaultRecord {
  int kind;
  char who[60];         // the operator's name
  long long values[4];  // low, high, value, dim
};

// Where kernels leave it: `claim` is memory of the device that is 0, `record` memory of the host.
struct FaultPlace {
  unsigned* claim;
  FaultRecord* record;
};

#ifdef __CUDACC__
// Fills the record, where no other thread has.
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
#endif

}  // namespace treadle::cuda
