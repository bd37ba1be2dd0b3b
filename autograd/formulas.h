// Every helper function that a formula in derivatives.yaml may call, a file for each family of
// operators.
#pragma once

#include "autograd/formulas_indexing.h"
#include "autograd/formulas_nn.h"
#include "autograd/formulas_pointwise.h"
#include "autograd/formulas_reduction.h"
#include "autograd/formulas_shape.h"
#include "autograd/formulas_statistics.h"
