// Cufft: the functions of cuFFT that kernels call. They are a table, so that tests can substitute
// others.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cufftXt.h>

#include "aten/backend/cuda/shared_library.h"

namespace treadle::cuda {

struct Cufft {
  SharedLibrary library{"libcufft.so.12", "computes Fourier transforms", "nvidia-cufft"};
  TREADLE_LIBRARY_FUNCTION(create, cufftCreate);
  TREADLE_LIBRARY_FUNCTION(destroy, cufftDestroy);
  TREADLE_LIBRARY_FUNCTION(set_auto_allocation, cufftSetAutoAllocation);
  TREADLE_LIBRARY_FUNCTION(make_plan, cufftXtMakePlanMany);
  TREADLE_LIBRARY_FUNCTION(set_stream, cufftSetStream);
  TREADLE_LIBRARY_FUNCTION(set_work_area, cufftSetWorkArea);
  TREADLE_LIBRARY_FUNCTION(execute, cufftXtExec);
};
Cufft& cufft();

}  // namespace treadle::cuda
