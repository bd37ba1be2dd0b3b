// The conversions at the boundary to plug-ins: errors as statuses, and values in both directions.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/dispatch/borrowed_value.h"
#include "core/dispatch/expression.h"
#include "core/dispatch/value.h"
#include "core/schema/function_schema.h"
#include "plugin/treadle/plugin.h"

namespace treadle::plugin {

// The text of the calling thread's last error, on either side.
std::string& last_error();
// The error for a plug-in's status, which is neither TREADLE_OK nor TREADLE_DECLINED.
Error error_of(treadle_status status);
// Throws that error. The caller handles TREADLE_DECLINED.
inline void check_status(treadle_status status) {
  if (status != TREADLE_OK) [[unlikely]]
    throw error_of(status);
}
treadle_status status_of(const Error& error);

// Runs the body of a function that a plug-in calls; exceptions become statuses.
template <class Body>
treadle_status guarded(Body&& body) noexcept {
  try {
    body();
    return TREADLE_OK;
  } catch (const Error& error) {
    return status_of(error);
  } catch (const std::bad_alloc&) {
    return status_of(Error(ErrorKind::OutOfMemory, "expected memory of the cpu, got none"));
  } catch (const std::exception& error) {
    return status_of(Error(ErrorKind::Runtime, error.what()));
  }
}

inline TensorImpl* impl_of(const treadle_tensor* tensor) {
  return reinterpret_cast<TensorImpl*>(const_cast<treadle_tensor*>(tensor));
}
inline treadle_tensor* handle_of(const Tensor& t) {
  return reinterpret_cast<treadle_tensor*>(t.impl());
}
// The tensor behind a handle, with a new reference.
Tensor tensor_of(const treadle_tensor* tensor);
// The tensor, with the handle's reference.
Tensor adopted(treadle_tensor* tensor);
// A handle with a new reference.
treadle_tensor* given_away(const Tensor& t);

inline treadle_device to_c(Device d) { return {static_cast<int32_t>(d.type), d.index}; }
Device from_c(treadle_device d);
ScalarType dtype_from_c(treadle_dtype dtype);
inline treadle_dtype to_c(ScalarType t) { return static_cast<treadle_dtype>(t); }
treadle_value to_c(const Scalar& s);
// Nodes, and values that are borrowed, have one layout on both sides.
inline treadle_expression to_c(const Expression& e) {
  return {reinterpret_cast<const treadle_node*>(e.nodes), e.count};
}
inline const treadle_value* to_c(const BorrowedValue* values) {
  return reinterpret_cast<const treadle_value*>(values);
}

// Raises where a tensor of the value does not lie in its storage.
void require_memory(const treadle_value& value);

// Values in the plug-in's form, borrowed. Their pointers live as long as this object and the stack
// from which it is made.
class BorrowedValues {
 public:
  explicit BorrowedValues(ArrayRef<Value> stack);
  const treadle_value* data() const { return values_.data(); }
  size_t size() const { return values_.size(); }

 private:
  treadle_value convert(const Value& v);
  std::vector<treadle_value> values_;
  std::vector<std::vector<uint8_t>> bools_;
};

// A plug-in's value as an argument of `type`. TypeError naming the argument if it does not fit.
Value from_c(const treadle_value& value, const schema::Type& type, std::string_view name);
// A result from a plug-in. It takes over the plug-in's references.
Value adopted(const treadle_value& value, const schema::Type& type);
// A result for a plug-in, which must release it: tensors with a new reference, lists and texts in
// memory of their own.
treadle_value given_away(const Value& value);
void release(treadle_value& value);
// The default of a missing argument; TypeError if it has none.
Value default_of(const schema::Argument& argument);

}  // namespace treadle::plugin
