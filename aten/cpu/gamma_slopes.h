// How gamma and beta numbers move with their parameters when their place in the distribution stays
// as it is: the implicit derivative, -(dF / da) / (dF / dx) for the distribution function F.
//
// Figurnov, Mohamed, Mnih: Implicit reparameterization gradients (2018). Relative errors where such
// numbers fall: below 1e-11 for gamma of shapes in [1e-3, 1e6], below 1e-8 for beta of shapes in
// [1e-2, 1e5].
#pragma once

namespace treadle::cpu {

// Of z, a gamma number of shape a and rate 1, by a. NaN outside a > 0, z >= 0.
double gamma_slope(double a, double z);

// Of x, a beta number of shapes a and b, by a, divided by 1 - x. NaN outside a, b > 0, 0 <= x <= 1.
double beta_slope(double x, double a, double b);

}  // namespace treadle::cpu
