// The one pointer through which a dying tensor releases its Python object.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/base/python_slot.h"

#include <atomic>

namespace treadle {
namespace {
std::atomic<bool (*)(TensorImpl&)> release_function{nullptr};
}  // namespace

void PythonSlot::set_release(bool (*function)(TensorImpl&)) { release_function.store(function); }

bool PythonSlot::release(TensorImpl& tensor) {
  auto* const function = release_function.load();
  return function == nullptr || function(tensor);
}

}  // namespace treadle
