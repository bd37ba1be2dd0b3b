// The emulated devices: memory, and streams whose work is done when something waits for it, and not
// before. Memory of a device cannot be read or written by the host but while such work is done: a
// host that does ends with a fault of the processor.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

#include "tests/cuda_emulator/activity.h"

namespace treadle::cuda::emulator {

constexpr int kDevices = 2;

// Queues work in a stream of this thread's device; null is its default stream. An exception from
// the work is an error of the next call that waits: cudaErrorLaunchFailure.
void queue(cudaStream_t stream, std::function<void()> work, const Activity& activity = {});

// Does what the stream has queued, then `work`, with the devices' memory open to it.
void at_once(cudaStream_t stream, const std::function<void()>& work);

}  // namespace treadle::cuda::emulator
