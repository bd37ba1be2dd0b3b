// Fourier transforms by cuFFT, up to three dimensions at a time. Other dimensions are moved to the
// end first. A plan is cached for each geometry. Its workspace comes from the allocator at each
// call.
//
// Results of a real transform equal the CPU's also where the input is not the transform of real
// numbers. The last dimension is transformed alone, and only the real part of its first entry
// counts (and of its middle one, where the size is even).
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/libraries/cufft.h"

#include <cmath>
#include <list>
#include <mutex>

#include "aten/backend/cuda/kernels/registration.h"
#include "aten/ops/_fft_c2c.h"
#include "aten/ops/_fft_c2r.h"
#include "aten/ops/_fft_r2c.h"
#include "aten/ops/clone.h"
#include "aten/ops/conj_physical.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/copy_.h"
#include "aten/ops/imag.h"
#include "aten/ops/mul.h"
#include "aten/ops/permute.h"
#include "aten/ops/select.h"
#include "aten/ops/zero_.h"

namespace treadle::cuda {

Cufft& cufft() {
  static auto* cufft = new Cufft;
  return *cufft;
}

namespace {

void succeed_cufft(cufftResult code, const char* doing) {
  check<ErrorKind::Runtime>(code == CUFFT_SUCCESS, OpName("cuda"), "expected ", doing,
                            " to succeed, got the cuFFT error ", static_cast<int>(code));
}

cudaDataType type_of(ScalarType t) {
  switch (t) {
    case ScalarType::Float32:
      return CUDA_R_32F;
    case ScalarType::Float64:
      return CUDA_R_64F;
    case ScalarType::Complex64:
      return CUDA_C_32F;
    default:
      return CUDA_C_64F;
  }
}

// Transforms of `batch` arrays that lie one after the other, each of the dimensions `points` (of
// the real array, where one of the two is real).
struct Geometry {
  Device device;
  ScalarType from, to;
  std::vector<long long> points;
  int64_t batch;
  bool operator==(const Geometry&) const = default;
};

// The plans last used. A plan has one stream and one workspace at a time: calls hold the lock until
// their transform is queued.
class Plans {
 public:
  void execute(const Geometry& g, cudaStream_t stream, void* from, void* to, int direction) {
    const std::lock_guard lock(mutex_);
    const Plan& plan = planned(g);
    const Tensor work =
        empty_tensor({static_cast<int64_t>(plan.work)}, ScalarType::UInt8, g.device);
    succeed_cufft(cufft().set_stream(plan.handle, stream), "choosing cuFFT's stream");
    succeed_cufft(cufft().set_work_area(plan.handle, work.data()), "giving cuFFT memory");
    succeed_cufft(cufft().execute(plan.handle, from, to, direction), "a Fourier transform");
  }

 private:
  static constexpr size_t kMax = 256;
  struct Plan {
    Geometry geometry;
    cufftHandle handle;
    size_t work;
  };

  const Plan& planned(const Geometry& g) {
    for (auto it = plans_.begin(); it != plans_.end(); ++it) {
      if (it->geometry != g) continue;
      plans_.splice(plans_.begin(), plans_, it);
      return plans_.front();
    }
    if (plans_.size() == kMax) {
      const DeviceGuard guard(plans_.back().geometry.device.index);
      cufft().destroy(plans_.back().handle);
      plans_.pop_back();
    }
    Plan plan{g, CUFFT_PLAN_NULL, 0};
    succeed_cufft(cufft().create(&plan.handle), "making a cuFFT plan");
    plans_.push_front(plan);
    try {
      succeed_cufft(cufft().set_auto_allocation(plan.handle, 0), "making a cuFFT plan");
      std::vector<long long> points = g.points;
      succeed_cufft(cufft().make_plan(plan.handle, static_cast<int>(points.size()), points.data(),
                                      nullptr, 1, 0, type_of(g.from), nullptr, 1, 0, type_of(g.to),
                                      g.batch, &plans_.front().work, type_of(to_complex(g.from))),
                    "planning a Fourier transform");
    } catch (...) {
      cufft().destroy(plan.handle);
      plans_.pop_front();
      throw;
    }
    return plans_.front();
  }

  std::mutex mutex_;
  std::list<Plan> plans_;  // the most recently used comes first
};
Plans& plans() {
  static auto* plans = new Plans;
  return *plans;
}

// The other dimensions, then `dims`.
DimVector moved_to_end(int64_t count, IntList dims) {
  DimVector order;
  for (int64_t d = 0; d < count; ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) order.push_back(d);
  for (const int64_t d : dims) order.push_back(d);
  return order;
}

// Real arrays have to lie where complex ones may.
bool well_placed(const Tensor& t) {
  return reinterpret_cast<uintptr_t>(t.data()) %
             static_cast<uintptr_t>(item_size(to_complex(t.dtype()))) ==
         0;
}

// One transform, of one to three dimensions of `from` into `to`.
void transform(const Tensor& from, IntList dims, bool forward, const Tensor& to) {
  const DimVector order = moved_to_end(from.dim(), dims);
  const Tensor input_view = aten::permute(from, order), output = aten::permute(to, order);
  Tensor input = aten::contiguous(input_view);
  const bool to_real = !is_complex(to.dtype());  // the library overwrites such an input
  if (!well_placed(input) || (to_real && input.data() == from.data())) input = aten::clone(input);
  if (to_real) {
    const Tensor imaginary = aten::imag(input);
    aten::zero_(aten::select(imaginary, -1, 0));
    if (output.size(-1) % 2 == 0) aten::zero_(aten::select(imaginary, -1, output.size(-1) / 2));
  }
  const Tensor result = output.is_contiguous() && well_placed(output)
                            ? output
                            : empty_tensor(output.sizes(), to.dtype(), to.device());
  const Tensor& real = is_complex(from.dtype()) ? output : input;
  Geometry g{from.device(), from.dtype(), to.dtype(), {}, real.numel()};
  for (size_t d = real.sizes().size() - dims.size(); d < real.sizes().size(); ++d) {
    g.points.push_back(real.sizes()[d]);
    g.batch /= real.sizes()[d];
  }
  const DeviceGuard guard(g.device.index);
  plans().execute(g, stream_on(g.device.index), input.data(), result.data(),
                  forward ? CUFFT_FORWARD : CUFFT_INVERSE);
  if (result.data() != output.data()) aten::copy_(output, result);
}

// Complex to complex along all of `dims`.
void transform_all(Tensor from, IntList dims, bool forward, const Tensor& to) {
  constexpr size_t kAtOnce = 3;
  for (size_t first = 0; first < dims.size(); first += kAtOnce) {
    const bool last = first + kAtOnce >= dims.size();
    const Tensor next = last ? to : empty_tensor(to.sizes(), to.dtype(), to.device());
    transform(from, dims.slice(first, std::min(kAtOnce, dims.size() - first)), forward, next);
    from = next;
  }
}

DimVector dims_of(const Tensor& t, IntList dim) {
  return wrap_dims("fft", OptionalIntList(dim), t.dim(), false);
}

// Makes `out` of a transform of `t`'s dimensions unitary (1) or a mean (2).
void scale(const Tensor& out, const Tensor& t, IntList dims, int64_t normalization) {
  if (normalization == 0) return;
  double count = 1;
  for (const int64_t d : dims) count *= static_cast<double>(t.size(d));
  aten::mul_(out, Scalar(normalization == 1 ? 1 / std::sqrt(count) : 1 / count));
}

template <class T>
void fft_c2c_cuda(const Tensor& self, IntList dim, int64_t normalization, bool forward,
                  const Tensor& out) {
  if (out.numel() == 0) return;
  if (dim.empty()) {
    aten::copy_(out, self);
    return;
  }
  const DimVector dims = dims_of(self, dim);
  transform_all(self, dims, forward, out);
  scale(out, self, dims, normalization);
}

// The library knows this transform in one direction; the other has the conjugate result.
template <class T>
void fft_r2c_cuda(const Tensor& self, IntList dim, int64_t normalization, bool forward,
                  const Tensor& out) {
  if (out.numel() == 0) return;
  const DimVector dims = dims_of(self, dim);
  const IntList all(dims);
  const size_t together = std::min<size_t>(all.size(), 3), rest = all.size() - together;
  const Tensor first = rest ? empty_tensor(out.sizes(), out.dtype(), out.device()) : out;
  transform(self, all.slice(rest, together), true, first);
  if (rest) transform_all(first, all.slice(0, rest), true, out);
  if (!forward) aten::copy_(out, aten::conj_physical(out));
  scale(out, self, all, normalization);
}

template <class T>
void fft_c2r_cuda(const Tensor& self, IntList dim, int64_t normalization, int64_t /*last_dim_size*/,
                  bool forward, const Tensor& out) {
  if (out.numel() == 0) return;
  const DimVector dims = dims_of(self, dim);
  const IntList all(dims), others = all.slice(0, all.size() - 1);
  Tensor half = forward ? aten::conj_physical(self) : self;
  if (!others.empty()) {
    const Tensor next = empty_tensor(self.sizes(), self.dtype(), self.device());
    transform_all(half, others, false, next);
    half = next;
  }
  transform(half, all.slice(all.size() - 1, 1), false, out);
  scale(out, out, all, normalization);
}

const auto c2c_registered = register_cuda<aten::ops::_fft_c2c>(
    TypeList<std::complex<float>, std::complex<double>>(),
    []<class T>() { return &fft_c2c_cuda<T>; }, "fft_c2c_cuda");
const auto r2c_registered = register_cuda<aten::ops::_fft_r2c>(
    TypeList<float, double>(), []<class T>() { return &fft_r2c_cuda<T>; }, "fft_r2c_cuda");
const auto c2r_registered = register_cuda<aten::ops::_fft_c2r_direction>(
    TypeList<std::complex<float>, std::complex<double>>(),
    []<class T>() { return &fft_c2r_cuda<T>; }, "fft_c2r_cuda");

}  // namespace
}  // namespace treadle::cuda
