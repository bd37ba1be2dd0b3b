// A backend in a page: tensors live in host memory of its own, generated kernels are interpreted,
// five operators have kernels, and Treadle does the rest. Copy it and replace a piece at a time.
//
// SPDX-License-Identifier: Apache-2.0
#include <treadle/evaluate.hpp>
#include <treadle/plugin.hpp>

#include <cstdlib>

// The device's name. Two copies with different names can be loaded into one process.
#ifndef TREADLE_MINIMAL_NAME
#define TREADLE_MINIMAL_NAME "minimal"
#endif

namespace {
using namespace treadle::plugin;

// ---- memory -------------------------------------------------------------------------------------

// A storage is any handle that is not null. Here it is an address, or, to show that nothing but
// this file looks into the memory of the device, an address with its upper bits flipped, which ends
// the process of whoever follows it.
#ifdef TREADLE_MINIMAL_HANDLES
constexpr uintptr_t kFlipped = uintptr_t{0x5a5a} << 48;
#else
constexpr uintptr_t kFlipped = 0;
#endif

char* address_of(void* storage) {
  return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(storage) ^ kFlipped);
}
void* handle_of(void* address) { return address_of(address); }

// The first element of a tensor of the device.
char* bytes(const Tensor& tensor) {
  return address_of(tensor.storage()) +
         static_cast<size_t>(tensor.storage_offset()) * item_size(tensor.dtype());
}
template <class T>
T* elements(const Tensor& tensor) {
  return reinterpret_cast<T*>(bytes(tensor));
}

class Minimal final : public Backend {
 public:
  // Two devices: so that "minimal:1" can be tried, too.
  int32_t device_count() override { return 2; }
  std::string device_name(int32_t) override { return "Host memory, interpreted"; }

  void* allocate(int32_t, size_t nbytes) override {
    void* const memory = std::malloc(nbytes);
    return memory == nullptr ? nullptr : handle_of(memory);
  }
  void deallocate(int32_t, void* storage, size_t) override { std::free(address_of(storage)); }

  // Either end is on the CPU, where a storage is an address, or on a device of this backend.
  bool copy(treadle_place to, treadle_place from, size_t nbytes, bool) override {
    std::memmove(place(to), place(from), nbytes);
    return true;
  }

  // A call whose operands' storages are addresses can be evaluated as it is.
  bool pointwise(const treadle_pointwise_call& given) override {
    treadle_pointwise_call call = given;
    std::vector<treadle_operand> inputs(given.inputs, given.inputs + given.input_count);
    for (treadle_operand& input : inputs) input.storage = address_of(input.storage);
    call.inputs = inputs.data();
    call.out.storage = address_of(call.out.storage);
    return evaluate(call);
  }
  bool reduce(const treadle_reduce_call& given) override {
    treadle_reduce_call call = given;
    call.in.storage = address_of(call.in.storage);
    call.out.storage = address_of(call.out.storage);
    return evaluate(call);
  }

 private:
  static char* place(const treadle_place& p) {
    char* const start =
        p.device.type == TREADLE_CPU ? static_cast<char*>(p.storage) : address_of(p.storage);
    return start + p.offset;
  }
};

// ---- kernels ------------------------------------------------------------------------------------

// Writes its first argument, so that is the one to write: contiguous.
void fill(const Tensor& self, const Number& value) {
  visit_all_dtypes(self.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    std::fill_n(elements<T>(self), self.numel(), value.to<T>());
  });
}

// out = a b for a (n, k) and b (k, m), summed in Sum.
template <class T, class Sum>
void multiply(const T* a, int64_t row_a, int64_t column_a, const T* b, int64_t row_b,
              int64_t column_b, T* out, int64_t n, int64_t k, int64_t m) {
  std::vector<Sum> row(static_cast<size_t>(m));
  for (int64_t i = 0; i < n; ++i) {
    std::fill(row.begin(), row.end(), Sum(0));
    for (int64_t l = 0; l < k; ++l) {
      const Sum factor = convert<Sum>(a[i * row_a + l * column_a]);
      for (int64_t j = 0; j < m; ++j)
        row[static_cast<size_t>(j)] += factor * convert<Sum>(b[l * row_b + j * column_b]);
    }
    for (int64_t j = 0; j < m; ++j) out[i * m + j] = convert<T>(row[static_cast<size_t>(j)]);
  }
}

// Calls f(Type<T>{}, Type<Sum>{}) with the type of the elements and the one they are summed in.
template <class F>
void visit_factors(DType dtype, const char* who, F f) {
  using C64 = std::complex<float>;
  using C128 = std::complex<double>;
  visit_dtype<Half, BFloat16, float, double, C64, C128>(dtype, who, [&](auto type) {
    using T = typename decltype(type)::type;
    constexpr bool small = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
    f(type, Type<std::conditional_t<small, float, T>>{});
  });
}

// Arguments may have any strides; results are contiguous.
void mm(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  visit_factors(out.dtype(), "mm", [&](auto type, auto sum) {
    using T = typename decltype(type)::type;
    multiply<T, typename decltype(sum)::type>(
        elements<T>(self), self.stride(0), self.stride(1), elements<T>(mat2), mat2.stride(0),
        mat2.stride(1), elements<T>(out), self.size(0), self.size(1), mat2.size(1));
  });
}

// One product for each entry of the batch, on as many threads as Treadle has.
void bmm(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  const int64_t n = self.size(1), k = self.size(2), m = mat2.size(2);
  visit_factors(out.dtype(), "bmm", [&](auto type, auto sum) {
    using T = typename decltype(type)::type;
    parallel_for(self.size(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        multiply<T, typename decltype(sum)::type>(
            elements<T>(self) + i * self.stride(0), self.stride(1), self.stride(2),
            elements<T>(mat2) + i * mat2.stride(0), mat2.stride(1), mat2.stride(2),
            elements<T>(out) + i * n * m, n, k, m);
    });
  });
}

// Only the kernel knows how many results there are, so it makes the tensor itself.
Tensor nonzero(const Tensor& given) {
  const Tensor self = contiguous(given);
  std::vector<int64_t> found;
  visit_all_dtypes(self.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    for (int64_t i = 0; i < self.numel(); ++i)
      if (convert<bool>(elements<T>(self)[i])) found.push_back(i);
  });
  const auto count = static_cast<int64_t>(found.size());
  Tensor out = empty({count, self.dim()}, DType::Int64, self.device());
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = found[static_cast<size_t>(i)];
    for (int64_t d = self.dim(); d-- > 0; rest /= self.size(d))
      elements<int64_t>(out)[i * self.dim() + d] = rest % self.size(d);
  }
  return out;
}

// The rows of a table, by number: what embeddings are made of.
void index_select(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
  const Tensor from = contiguous(self), at = contiguous(index);
  int64_t outer = 1, inner = 1;
  const int64_t last = out.dim() - 1;
  if (dim < 0) dim += std::max<int64_t>(out.dim(), 1);
  for (int64_t d = 0; d < dim; ++d) outer *= out.size(d);
  for (int64_t d = dim + 1; d <= last; ++d) inner *= out.size(d);
  const int64_t rows = self.dim() == 0 ? 1 : self.size(dim), picked = at.numel();
  const size_t row = static_cast<size_t>(inner) * item_size(out.dtype());
  visit_dtype<int32_t, int64_t>(at.dtype(), "index_select", [&](auto type) {
    using Index = typename decltype(type)::type;
    for (int64_t i = 0; i < picked; ++i) {
      const int64_t k = elements<Index>(at)[i];
      check(k >= 0 && k < rows, ErrorKind::Index, "index_select: expected index in [0, ", rows,
            "), got ", k);
      for (int64_t o = 0; o < outer; ++o)
        std::memcpy(bytes(out) + static_cast<size_t>(o * picked + i) * row,
                    bytes(from) + static_cast<size_t>(o * rows + k) * row, row);
    }
  });
}

// ---- what Treadle is told -----------------------------------------------------------------------

void start() {
  BackendDescription description;
  description.name = TREADLE_MINIMAL_NAME;
  description.host_visible = kFlipped == 0;
  const treadle_device_type device = register_backend<Minimal>(description);

  register_kernel<&fill>("_fill_(Tensor(a!) self, Scalar value) -> Tensor(a!)", device);
  const DType factors[] = {DType::Float16, DType::BFloat16,  DType::Float32,
                           DType::Float64, DType::Complex64, DType::Complex128};
  register_kernel<&mm>("mm(Tensor self, Tensor mat2) -> Tensor", device, factors);
  register_kernel<&bmm>("bmm(Tensor self, Tensor mat2) -> Tensor", device, factors);
  register_kernel<&nonzero>("nonzero(Tensor self) -> Tensor", device);
  register_kernel<&index_select>("index_select(Tensor self, int dim, Tensor index) -> Tensor",
                                 device);
}

}  // namespace

TREADLE_PLUGIN(TREADLE_MINIMAL_NAME, "1.0", start)
