// The one pointer through which a dying tensor lets go of its Python object.
#include "core/python_slot.h"

#include <atomic>

namespace treadle {
namespace {
std::atomic<void (*)(void*)> release_function{nullptr};
}  // namespace

void PythonSlot::set_release(void (*function)(void*)) { release_function.store(function); }

void PythonSlot::release(void* object) {
  if (auto* function = release_function.load()) function(object);
}

}  // namespace treadle
