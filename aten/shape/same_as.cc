#include "aten/shape/same_as.h"

namespace treadle::shape {

TensorSpec same_as(const char*, const Tensor& self) {
  return {self.sizes(), self.dtype(), self.device()};
}

}  // namespace treadle::shape
