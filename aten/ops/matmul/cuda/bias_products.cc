// cuBLASLt: descriptors of products, and the plans from its heuristics.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/matmul/cuda/bias_products.h"

#include <cublasLt.h>

#include <array>
#include <map>
#include <mutex>
#include <optional>

#include "aten/backend/cuda/kernels/registration.h"
#include "aten/backend/cuda/shared_library.h"

namespace treadle::cuda {
namespace {

struct CublasLt {
  SharedLibrary library{"libcublasLt.so.13", "multiplies matrices", "nvidia-cublas"};
#define TREADLE_CUBLASLT(name, symbol)             \
  std::remove_pointer_t<decltype(&symbol)>* name = \
      library.function<std::remove_pointer_t<decltype(&symbol)>>(#symbol)
  TREADLE_CUBLASLT(create, cublasLtCreate);
  TREADLE_CUBLASLT(status_name, cublasLtGetStatusName);
  // The header's functions for descriptions on the stack call these.
  TREADLE_CUBLASLT(layout_init, cublasLtMatrixLayoutInit_internal);
  TREADLE_CUBLASLT(product_init, cublasLtMatmulDescInit_internal);
  TREADLE_CUBLASLT(product_set, cublasLtMatmulDescSetAttribute);
  TREADLE_CUBLASLT(preference_init, cublasLtMatmulPreferenceInit_internal);
  TREADLE_CUBLASLT(preference_set, cublasLtMatmulPreferenceSetAttribute);
  TREADLE_CUBLASLT(heuristic, cublasLtMatmulAlgoGetHeuristic);
  TREADLE_CUBLASLT(multiply, cublasLtMatmul);
#undef TREADLE_CUBLASLT
};
const CublasLt& cublas_lt() {
  static const auto* library = new CublasLt;
  return *library;
}

void succeed_lt(cublasStatus_t code, const char* doing) {
  check<ErrorKind::Runtime>(code == CUBLAS_STATUS_SUCCESS, OpName("cuda"), "expected ", doing,
                            " to succeed, got ", cublas_lt().status_name(code));
}

// A device's handle, which all threads may use.
cublasLtHandle_t handle_on(int device) {
  static std::mutex mutex;
  static auto* handles = new std::map<int, cublasLtHandle_t>;
  const std::lock_guard lock(mutex);
  cublasLtHandle_t& handle = (*handles)[device];
  if (!handle) succeed_lt(cublas_lt().create(&handle), "starting cuBLASLt");
  return handle;
}

// The largest power of two up to 256 that divides an address.
uint32_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data) | 256;
  return static_cast<uint32_t>(address & (~address + 1));
}

// A product as cuBLASLt wants it described.
class Description {
 public:
  explicit Description(const BiasProduct& p) {
    constexpr const char* kDoing = "describing a product";
    const auto layout = [&](cublasLtMatrixLayoutOpaque_t& l, int64_t rows, int64_t columns,
                            int64_t leading) {
      succeed_lt(cublas_lt().layout_init(&l, sizeof l, p.data, static_cast<uint64_t>(rows),
                                         static_cast<uint64_t>(columns), leading),
                 kDoing);
    };
    layout(a, p.a_transposed ? p.k : p.m, p.a_transposed ? p.m : p.k, p.a_leading);
    layout(b, p.b_transposed ? p.n : p.k, p.b_transposed ? p.k : p.n, p.b_leading);
    layout(out, p.m, p.n, p.m);
    succeed_lt(cublas_lt().product_init(&product, sizeof product, p.compute, CUDA_R_32F), kDoing);
    const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
      succeed_lt(cublas_lt().product_set(&product, attribute, &value, sizeof value), kDoing);
    };
    const auto operation = [](bool transposed) -> int32_t {
      return transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, operation(p.a_transposed));
    set(CUBLASLT_MATMUL_DESC_TRANSB, operation(p.b_transposed));
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(CUBLASLT_EPILOGUE_BIAS));
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
  }

  cublasLtMatrixLayoutOpaque_t a, b, out;
  cublasLtMatmulDescOpaque_t product;
};

struct Plan {
  cublasLtMatmulAlgo_t algorithm;
  size_t workspace;
};
constexpr size_t kMaxWorkspace = size_t{32} << 20;

std::optional<Plan> ask(const BiasProduct& p, Description& d,
                        const std::array<uint32_t, 4>& aligned) {
  constexpr const char* kDoing = "describing a product";
  cublasLtMatmulPreferenceOpaque_t preference;
  succeed_lt(cublas_lt().preference_init(&preference, sizeof preference), kDoing);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    succeed_lt(cublas_lt().preference_set(&preference, attribute, &value, sizeof value), kDoing);
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kMaxWorkspace});
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, aligned[0]);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, aligned[1]);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, aligned[2]);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, aligned[2]);
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasStatus_t status = cublas_lt().heuristic(
      handle_on(p.device), &d.product, &d.a, &d.b, &d.out, &d.out, &preference, 1, &found, &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || count == 0) return std::nullopt;
  succeed_lt(status, "choosing a product's kernel");
  if (found.state != CUBLAS_STATUS_SUCCESS) return std::nullopt;
  return Plan{found.algo, found.workspaceSize};
}

// The plan of a geometry, made at its first use.
std::optional<Plan> plan_for(const BiasProduct& p, Description& d) {
  using Key = std::array<int64_t, 14>;
  const std::array<uint32_t, 4> aligned = {alignment_of(p.a), alignment_of(p.b),
                                           alignment_of(p.out), alignment_of(p.bias)};
  const Key key = {p.device,   p.data,     p.compute,  p.a_transposed, p.b_transposed,
                   p.m,        p.n,        p.k,        p.a_leading,    p.b_leading,
                   aligned[0], aligned[1], aligned[2], aligned[3]};
  static std::mutex mutex;
  static auto* known = new std::map<Key, std::optional<Plan>>;
  const std::lock_guard lock(mutex);
  const auto it = known->find(key);
  return it != known->end() ? it->second : known->emplace(key, ask(p, d, aligned)).first->second;
}

}  // namespace

bool multiply_with_bias(const BiasProduct& p) {
  Description d(p);
  const std::optional<Plan> plan = plan_for(p, d);
  if (!plan) return false;
  const Device device{DeviceType::CUDA, static_cast<int8_t>(p.device)};
  const Tensor space =
      empty_tensor({static_cast<int64_t>(plan->workspace)}, ScalarType::UInt8, device);
  const float none = 0;
  succeed_lt(cublas_lt().multiply(handle_on(p.device), &d.product, &p.scale, p.a, &d.a, p.b, &d.b,
                                  &none, p.out, &d.out, p.out, &d.out, &plan->algorithm,
                                  space.data(), plan->workspace, p.stream),
             "multiplying matrices");
  return true;
}

}  // namespace treadle::cuda
