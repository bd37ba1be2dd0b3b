// The table of scalar functions. A new one is a line here and its definition beside the other
// kernels' functions.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/expressions/scalar_functions.h"

#include <vector>

namespace treadle::schemac {
namespace {

constexpr ScalarFunction kFunctions[] = {
    // Powers, exponentials, logarithms.
    {"abs"},
    {"square"},
    {"sqrt"},
    {"rsqrt"},
    {"reciprocal"},
    {"exp"},
    {"exp2"},
    {"expm1"},
    {"log"},
    {"log2"},
    {"log10"},
    {"log1p"},
    {"pow", 2, 2},
    {"hypot", 2, 2},
    {"logaddexp", 2, 2},
    {"logaddexp2", 2, 2},
    // Trigonometric and hyperbolic.
    {"sin"},
    {"cos"},
    {"tan"},
    {"asin"},
    {"acos"},
    {"atan"},
    {"atan2", 2, 2},
    {"sinh"},
    {"cosh"},
    {"tanh"},
    {"asinh"},
    {"acosh"},
    {"atanh"},
    {"sinc"},
    // Special functions and activations.
    {"erf"},
    {"erfc"},
    {"erfinv"},
    {"lgamma"},
    {"digamma"},
    {"i0"},
    {"i0e"},
    {"i1"},
    {"i1e"},
    {"bessel_j0"},
    {"bessel_j1"},
    {"bessel_y0"},
    {"bessel_y1"},
    {"bessel_k0"},
    {"bessel_k1"},
    {"scaled_bessel_k0"},
    {"scaled_bessel_k1"},
    {"spherical_bessel_j0"},
    {"airy_ai"},
    {"erfcx"},
    {"ndtr"},
    {"log_ndtr"},
    {"ndtri"},
    {"zeta", 2, 2},
    {"polygamma", 2, 2},
    {"igamma", 2, 2},
    {"igammac", 2, 2},
    {"chebyshev_t", 2, 2},
    {"shifted_chebyshev_t", 2, 2},
    {"shifted_chebyshev_u", 2, 2},
    {"shifted_chebyshev_v", 2, 2},
    {"shifted_chebyshev_w", 2, 2},
    {"chebyshev_u", 2, 2},
    {"chebyshev_v", 2, 2},
    {"chebyshev_w", 2, 2},
    {"hermite_h", 2, 2},
    {"hermite_he", 2, 2},
    {"laguerre_l", 2, 2},
    {"legendre_p", 2, 2},
    {"sigmoid"},
    {"relu"},
    {"gelu"},
    {"gelu_tanh"},
    {"silu"},
    {"softplus", 1, 3},
    // Rounding, signs, division.
    {"floor"},
    {"ceil"},
    {"round"},
    {"trunc"},
    {"frac"},
    {"sign"},
    {"sgn"},
    {"copysign", 2, 2},
    {"nextafter", 2, 2},
    {"fmod", 2, 2},
    {"remainder", 2, 2},
    {"floor_divide", 2, 2},
    {"trunc_divide", 2, 2},
    {"gcd", 2, 2},
    {"lcm", 2, 2},
    {"signbit"},
    // Choosing.
    {"maximum", 2, 2},
    {"minimum", 2, 2},
    {"fmax", 2, 2},
    {"fmin", 2, 2},
    {"clamp", 3, 3},
    {"where", 3, 3},
    {"nan_to_num", 4, 4},
    {"isnan"},
    {"isinf"},
    {"isfinite"},
    // Truth values and bits.
    {"cast_bool"},
    {"logical_and", 2, 2},
    {"logical_or", 2, 2},
    {"logical_xor", 2, 2},
    {"logical_not"},
    {"bitwise_and", 2, 2},
    {"bitwise_or", 2, 2},
    {"bitwise_xor", 2, 2},
    {"bitwise_not"},
    {"shift_left", 2, 2},
    {"shift_right", 2, 2},
    // Complex numbers.
    {"real"},
    {"imag"},
    {"conj"},
    {"arg"},
};

}  // namespace

const ScalarFunction* find_scalar_function(std::string_view name) {
  for (const ScalarFunction& function : kFunctions) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

std::span<const std::string> scalar_function_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const ScalarFunction& function : kFunctions) all.emplace_back(function.name);
    return all;
  }();
  return names;
}

}  // namespace treadle::schemac
