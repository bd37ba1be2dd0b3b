// Libraries of operators, and functions of C++ as their kernels.
//
//   torch::stable::Tensor twice(torch::stable::Tensor x);
//   STABLE_TORCH_LIBRARY(my_ns, m) { m.def("twice(Tensor x) -> Tensor"); }
//   STABLE_TORCH_LIBRARY_IMPL(my_ns, CPU, m) { m.impl("twice", TORCH_BOX(&twice)); }
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>
#include <utility>

#include <torch/csrc/stable/stableivalue_conversions.h>

HIDDEN_NAMESPACE_BEGIN(torch, stable, detail)

// ---- a library

class StableLibrary final {
 public:
  enum class Kind { DEF, IMPL, FRAGMENT };
  using Kernel = void(StableIValue* stack, uint64_t inputs, uint64_t outputs);

  StableLibrary(Kind kind, const char* ns, const char* key, const char* file, uint32_t line) {
    if (kind == Kind::IMPL) {
      STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_library_init_impl(ns, key, file, line, &library_));
    } else if (kind == Kind::DEF) {
      STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_library_init_def(ns, file, line, &library_));
    } else {
      STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_library_init_fragment(ns, file, line, &library_));
    }
  }
  ~StableLibrary() { aoti_torch_delete_library_object(library_); }
  StableLibrary(const StableLibrary&) = delete;
  StableLibrary& operator=(const StableLibrary&) = delete;

  StableLibrary& def(const char* schema) {
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_library_def(library_, schema));
    return *this;
  }
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_12_0
  StableLibrary& def(const char* schema, const std::vector<at::Tag>& tags) {
    std::vector<int32_t> numbers;
    for (const at::Tag tag : tags) numbers.push_back(number_of(tag));
    STABLE_TORCH_ERROR_CODE_CHECK(torch_library_def_with_tags(
        library_, schema, numbers.data(), static_cast<int32_t>(numbers.size())));
    return *this;
  }
#endif
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_13_0
  StableLibrary& set_python_module(const char* module, const char* context = "") {
    STABLE_TORCH_ERROR_CODE_CHECK(torch_library_set_python_module(library_, module, context));
    return *this;
  }
#endif
  StableLibrary& impl(const char* name, Kernel* kernel) {
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_10_0
    STABLE_TORCH_ERROR_CODE_CHECK(torch_library_impl(library_, name, kernel, TORCH_ABI_VERSION));
#else
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_library_impl(library_, name, kernel));
#endif
    return *this;
  }

 private:
  TorchLibraryHandle library_ = nullptr;
};

// Fills a library when the extension is loaded.
struct StableTorchLibraryInit final {
  StableTorchLibraryInit(StableLibrary::Kind kind, void (*fill)(StableLibrary&), const char* ns,
                         const char* key, const char* file, uint32_t line)
      : library(kind, ns, key, file, line) {
    fill(library);
  }
  StableLibrary library;
};

// ---- a function as a kernel

// The type that holds an argument: one that owns what the parameter refers to.
template <typename T>
struct Owned {
  using type = T;
};
template <typename T>
struct Owned<torch::headeronly::HeaderOnlyArrayRef<T>> {
  using type = std::vector<T>;
};
template <typename T>
struct Owned<std::optional<torch::headeronly::HeaderOnlyArrayRef<T>>> {
  using type = std::optional<std::vector<T>>;
};
template <>
struct Owned<std::string_view> {
  using type = std::string;
};
template <typename T>
using owned_t = typename Owned<std::remove_cv_t<std::remove_reference_t<T>>>::type;

template <typename T>
struct Results {
  static constexpr uint64_t count = 1;
  static void put(StableIValue* stack, const T& result) {
    stack[0] = Conversion<std::remove_cv_t<std::remove_reference_t<T>>>::from(result);
  }
};
template <typename... Ts>
struct Results<std::tuple<Ts...>> {
  static constexpr uint64_t count = sizeof...(Ts);
  static void put(StableIValue* stack, const std::tuple<Ts...>& results) {
    std::apply(
        [&](const auto&... result) {
          size_t i = 0;
          ((stack[i++] = Conversion<std::decay_t<decltype(result)>>::from(result)), ...);
        },
        results);
  }
};

template <auto function>
struct boxer;
template <typename R, typename... Args, R (*function)(Args...)>
struct boxer<function> {
  static void boxed_fn(StableIValue* stack, uint64_t inputs, uint64_t outputs) {
    if constexpr (std::is_void_v<R>) {
      check(inputs, outputs, 0);
      call(stack, std::index_sequence_for<Args...>());
    } else {
      check(inputs, outputs, Results<R>::count);
      Results<R>::put(stack, call(stack, std::index_sequence_for<Args...>()));
    }
  }

 private:
  static void check(uint64_t inputs, uint64_t outputs, uint64_t results) {
    STD_TORCH_CHECK(inputs == sizeof...(Args), "expected a kernel of ", inputs,
                    " arguments, as the schema has, got one of ", sizeof...(Args));
    STD_TORCH_CHECK(outputs == results, "expected a kernel of ", outputs,
                    " results, as the schema has, got one of ", results);
  }
  template <size_t... I>
  static R call([[maybe_unused]] StableIValue* stack, std::index_sequence<I...>) {
    // Braces: from the first argument to the last.
    [[maybe_unused]] std::tuple<owned_t<Args>...> values{to<owned_t<Args>>(stack[I])...};
    return function(std::get<I>(values)...);
  }
};

HIDDEN_NAMESPACE_END(torch, stable, detail)

#define TORCH_BOX(function) torch::stable::detail::boxer<(function)>::boxed_fn

#define TREADLE_STABLE_LIBRARY(kind, name, ns, key, m)                                         \
  static void name(torch::stable::detail::StableLibrary&);                                     \
  static const torch::stable::detail::StableTorchLibraryInit C10_CONCATENATE(name, _instance)( \
      torch::stable::detail::StableLibrary::Kind::kind, &name, #ns, key, __FILE__, __LINE__);  \
  void name(torch::stable::detail::StableLibrary& m)

#define STABLE_TORCH_LIBRARY(ns, m) TREADLE_STABLE_LIBRARY(DEF, treadle_define_##ns, ns, nullptr, m)
#define STABLE_TORCH_LIBRARY_FRAGMENT(ns, m)                                                   \
  TREADLE_STABLE_LIBRARY(FRAGMENT, C10_CONCATENATE(treadle_fragment_##ns##_, __COUNTER__), ns, \
                         nullptr, m)
#define STABLE_TORCH_LIBRARY_IMPL(ns, key, m)                                                   \
  TREADLE_STABLE_LIBRARY(IMPL, C10_CONCATENATE(treadle_implement_##ns##_##key##_, __COUNTER__), \
                         ns, #key, m)
