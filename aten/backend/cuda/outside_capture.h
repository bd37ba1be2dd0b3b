// OutsideCapture: for its time, this thread's calls to the runtime that a capture cannot hold
// (asking for memory, loading a kernel) are done beside it, where otherwise they would end it.
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
