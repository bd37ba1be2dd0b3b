// OutsideCapture: while it exists, this thread's runtime calls that a capture cannot hold
// (allocating memory, loading a kernel) run outside the capture. Otherwise they would end it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/backend/cuda/calls.h"

namespace treadle::cuda {

class OutsideCapture {
 public:
  OutsideCapture() { calls().thread_exchange_stream_capture_mode(&mode_); }
  ~OutsideCapture() { calls().thread_exchange_stream_capture_mode(&mode_); }
  OutsideCapture(const OutsideCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // then, the mode before
};

}  // namespace treadle::cuda
