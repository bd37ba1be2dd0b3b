// The conversions at the boundary to plug-ins: errors as statuses, and values in both directions.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/dispatch/value.h"
#include "core/schema/function_schema.h"
#include "plugin/treadle/plugin.h"

namespace treadle::plugin {

// The text of the calling thread's last error, on either side.
std::string& last_error();
// Throws the error that a status of a plug-in stands for; TREADLE_DECLINED is the caller's to see.
void check_status(treadle_status status);
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
// The tensor behind a handle, with a reference of its own.
Tensor tensor_of(const treadle_tensor* tensor);
// The tensor with the reference that the handle has.
Tensor adopted(treadle_tensor* tensor);
// A handle with a reference of its own.
treadle_tensor* given_away(const Tensor& t);

inline treadle_device to_c(Device d) { return {static_cast<int32_t>(d.type), d.index}; }
Device from_c(treadle_device d);
ScalarType dtype_from_c(treadle_dtype dtype);
inline treadle_dtype to_c(ScalarType t) { return static_cast<treadle_dtype>(t); }
treadle_value to_c(const Scalar& s);

// Values as a plug-in sees them, borrowed: what they point to lives as long as this object and the
// stack they were made of.
class BorrowedValues {
 public:
  explicit BorrowedValues(ArrayRef<Value> stack);
  const treadle_value* data() const { return values_.data(); }
  size_t size() const { return values_.size(); }

 private:
  treadle_value convert(const Value& v);
  std::vector<treadle_value> values_;
  std::deque<std::vector<uint8_t>> bools_;
  std::deque<std::vector<treadle_tensor*>> tensors_;
};

// A plug-in's value as an argument of `type`; TypeError naming the argument where it does not fit.
Value from_c(const treadle_value& value, const schema::Type& type, std::string_view name);
// A result that a plug-in gives: takes over its references.
Value adopted(const treadle_value& value, const schema::Type& type);
// A result for a plug-in, which it is to release: tensors with a reference of their own, lists and
// texts in memory of their own.
treadle_value given_away(const Value& value);
void release(treadle_value& value);
// The value of an argument that was not given; TypeError where it has none.
Value default_of(const schema::Argument& argument);

}  // namespace treadle::plugin
