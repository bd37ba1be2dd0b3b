// The numbers of the matrix exponential, on every device: scaling and squaring around the Pade
// approximant of degree 13 (Higham, 2005).
//
// exp(A) = exp(A / 2^s)^(2^s). The number s makes the 1-norm of A / 2^s at most 5.37, up to which
// the approximant has full double precision.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace treadle::matrix_exp {

// The coefficients of A^k in the approximant, relative to that of the identity, because float would
// overflow otherwise.
inline double coefficient(int k) {
  constexpr double kCoefficients[] = {64764752532480000.,
                                      32382376266240000.,
                                      7771770303897600.,
                                      1187353796428800.,
                                      129060195264000.,
                                      10559470521600.,
                                      670442572800.,
                                      33522128640.,
                                      1323241920.,
                                      40840800.,
                                      960960.,
                                      16380.,
                                      182.,
                                      1.};
  return kCoefficients[k] / kCoefficients[0];
}

// s for a matrix of this 1-norm.
template <class R>
int squarings(R norm) {
  constexpr R kBound(5.371920351148152);
  if (!(norm > kBound)) return 0;
  // A norm that overflows counts as the largest number.
  norm = std::min(norm, std::numeric_limits<R>::max());
  return std::max(0, static_cast<int>(std::ceil(std::log2(norm / kBound))));
}

// 2^-s as two factors, because it may be less than the smallest number.
template <class R>
R first_factor(int squarings) {
  return std::ldexp(R(1), -(squarings / 2));
}
template <class R>
R second_factor(int squarings) {
  return std::ldexp(R(1), squarings / 2 - squarings);
}

}  // namespace treadle::matrix_exp
