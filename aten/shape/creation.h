// Shape rules of triangles and of drawing from weights.
#pragma once

#include "aten/structured.h"

namespace treadle::shape {

TensorSpec triangle(const char* op, const Tensor& self);
TensorSpec multinomial(const char* op, const Tensor& self, int64_t num_samples, bool replacement);

}  // namespace treadle::shape
