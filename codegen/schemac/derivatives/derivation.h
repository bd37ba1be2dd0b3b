// Derives the gradients of pointwise operators from their expressions, so that an entry without a
// formula in derivatives.yaml has one:
//
//   - func: sin(Tensor self) -> Tensor
//     pointwise: sin(self)                 self: grad * conj(cos(self))
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/schemac/derivatives/callables.h"
#include "codegen/schemac/derivatives/element_operators.h"
#include "codegen/schemac/expressions/scalar_functions.h"
#include "codegen/schemac/model.h"

namespace treadle::schemac {

// Fills in `derivation` of every pointwise operator. `callables` and `operators` have those of the
// model as well.
void derive(Model& model, const ScalarFunctions& functions, const Callables& callables,
            const ElementOperators& operators);

// Fills in the formulas that derivatives.yaml leaves out.
void use_derivations(Model& model);

}  // namespace treadle::schemac
