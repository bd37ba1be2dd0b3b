// Opens cuSOLVER, and makes its handles.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/libraries/solver.h"

#include <map>

#include "aten/backend/cuda/libraries/kept_by_thread.h"

namespace treadle::cuda {

Cusolver& cusolver() {
  static auto* cusolver = new Cusolver;
  return *cusolver;
}

void succeed_cusolver(cusolverStatus_t code, const char* doing) {
  check<ErrorKind::Runtime>(code == CUSOLVER_STATUS_SUCCESS, OpName("cuda"), "expected ", doing,
                            " to succeed, got the cuSOLVER error ", static_cast<int>(code));
}

int solver_int(int64_t n) {
  check<ErrorKind::Runtime>(n <= INT32_MAX, OpName("linalg"),
                            "expected every dimension of a matrix below 2^31, got ", n);
  return static_cast<int>(n);
}

Solver::Solver(Device device) : device_(device), guard_(device.index) {
  struct Handle {
    cusolverDnHandle_t handle = nullptr;
    cusolverDnParams_t params = nullptr;
    gesvdjInfo_t jacobi = nullptr;
  };
  Handle& h = kept_by_thread<std::map<int, Handle>>()[device.index];
  if (!h.jacobi) {
    if (!h.handle) succeed_cusolver(cusolver().create(&h.handle), "starting cuSOLVER");
    succeed_cusolver(cusolver().set_deterministic(h.handle, CUSOLVER_DETERMINISTIC_RESULTS),
                     "setting up cuSOLVER");
    if (!h.params) succeed_cusolver(cusolver().create_params(&h.params), "setting up cuSOLVER");
    succeed_cusolver(cusolver().create_jacobi(&h.jacobi), "setting up cuSOLVER");
  }
  succeed_cusolver(cusolver().set_stream(h.handle, stream_on(device.index)),
                   "choosing cuSOLVER's stream");
  handle_ = h.handle;
  params_ = h.params;
  jacobi_ = h.jacobi;
}

}  // namespace treadle::cuda
