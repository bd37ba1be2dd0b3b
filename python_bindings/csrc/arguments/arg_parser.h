// The argument parser of generated functions: one constant table for each signature, without code
// of its own.
//
//   static const Param add_params[] = {{"self", Kind::Tensor},
//                                      {"other", Kind::Tensor},
//                                      {"alpha", Kind::Number, kKeyword | kDefault, 0, "1"}};
//   // TypeError listing the signatures when none fits.
//   Call<4> call(add_function, object, arguments, count, names);
//   aten::add(call.tensor(0), call.tensor(1), call.scalar(2, 1));
//
// Signatures are tried in order, twice: first by exact kinds; then a number may stand for a tensor,
// and a 0-dim tensor for a number. The first signature that fits is taken.
//
// A call that __torch_function__ of an argument's class or of a mode takes over (overrides.h) has
// its result before it reaches an operator. Every user of Call must check overridden().
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "python_bindings/csrc/arguments/convert.h"
#include "python_bindings/csrc/devices/default_device.h"

namespace treadle::python {

enum class Kind : uint8_t {
  Tensor,
  TensorList,
  Int,
  IntList,
  Float,
  FloatList,
  Bool,
  BoolList,
  Number,
  Str,
  Dtype,
  Layout,
  Device,
  MemoryFormat,
  Generator,
  Any,  // any object at all
  NumberList,
};
inline constexpr uint8_t kNullable = 1;       // takes None
inline constexpr uint8_t kDefault = 2;        // may be left out
inline constexpr uint8_t kKeyword = 4;        // only by name
inline constexpr uint8_t kNullableItems = 8;  // Tensor?[]
inline constexpr uint8_t kTensorOnly = 16;    // takes no number in place of a tensor

struct Param {
  const char* name;
  Kind kind;
  uint8_t flags = 0;
  int8_t length = 0;  // of a list with a fixed one, as int[2], which then also takes a single value
  const char* default_text = "";
};

struct Signature {
  const Param* params;
  uint8_t count;
  uint8_t positional;  // the number of positional ones; they come first
  int8_t self;         // which of them a method's object is; -1 when it is no method
  bool function;       // whether it can be called as a function
};

// All signatures of one Python name.
struct Function {
  const char* name;
  const Signature* signatures;
  uint8_t count;
  PyObject** names = nullptr;  // the parameters' names, interned at the first call
  PyObject* object = nullptr;  // what overrides receive, if it is not found by its name
};

namespace detail {

// The arguments of a call, and their slots.
struct Arguments {
  PyObject* object;  // of a method; else null
  PyObject* const* values;
  Py_ssize_t count;
  PyObject* names;                        // of the values after the first `count`; or null
  mutable bool overriding_class = false;  // set where a tensor's class has a __torch_function__
};
// In place of a signature's number: the call was taken over, and its result is in the first slot.
inline constexpr int kOverridden = -1;
// Whether overrides take the call over. The result is then in the first slot.
bool take_over(const Function& function, const Arguments& arguments, PyObject** slots);
// Fills `slots` by the first signature that fits, and returns its number. A list given as separate
// arguments leaves `spread()` in its slot.
int parse(Function& function, const Arguments& arguments, PyObject** slots);
PyObject* spread();

void read_ints(const char* op, PyObject* o, int length, DimVector& out);
void read_spread(const char* op, const Arguments& arguments, DimVector& out);
std::vector<Tensor> read_tensors(const char* op, PyObject* o);
std::vector<double> read_doubles(const char* op, PyObject* o);
std::vector<Scalar> read_scalars(const char* op, PyObject* o);
void read_bools(const char* op, PyObject* o, bool* out, size_t length);
// Warns that masks of bytes are deprecated.
void warn_of_bytes(const char* op);
// The bool mask for a mask of bytes, with that warning.
Tensor mask_of_bytes(const char* op, const Tensor& bytes);

}  // namespace detail

// A list argument that may be None. It holds the list by value during the call.
struct OptionalInts {
  std::optional<DimVector> value;
  operator OptionalIntList() const {  // NOLINT: the type operators take
    return value ? OptionalIntList(IntList(*value)) : std::nullopt;
  }
};

// One parsed call of a function whose longest signature has N parameters. The getters give the
// default of an omitted argument.
template <size_t N>
class Call {
 public:
  Call(Function& function, PyObject* object, PyObject* const* values, Py_ssize_t count,
       PyObject* names)
      : op_(function.name),
        arguments_{object, values, count, names},
        overload_(detail::parse(function, arguments_, slots_)) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  int overload() const { return overload_; }
  bool overridden() const { return overload_ == detail::kOverridden; }
  // A new reference, to be taken once, when the call is overridden.
  PyObject* result() const { return slots_[0]; }
  bool has(size_t i) const { return slots_[i] && slots_[i] != Py_None; }

  // Null if it was omitted.
  PyObject* object(size_t i) const { return slots_[i]; }

  // Undefined for None.
  const Tensor& tensor(size_t i) {
    PyObject* o = slots_[i];
    if (o && is_exact_tensor(o)) return unwrap(o);
    if (o && o != Py_None) owned_[i] = operand_tensor(op_, o);
    return owned_[i];
  }
  // A tensor that the operator requires to be of dtype bool. Bytes are accepted, too, with a
  // warning.
  const Tensor& mask(size_t i) {
    const Tensor& given = tensor(i);
    if (!given.defined() || given.dtype() != ScalarType::UInt8) [[likely]]
      return given;
    return owned_[i] = detail::mask_of_bytes(op_, given);
  }
  std::vector<Tensor> tensors(size_t i) const {
    return has(i) ? detail::read_tensors(op_, slots_[i]) : std::vector<Tensor>();
  }
  // The i-th of the tensors given together as `out=(a, b)`.
  const std::vector<Tensor> outputs(size_t i, size_t expected) const {
    std::vector<Tensor> list = tensors(i);
    check<ErrorKind::Type>(list.size() == expected, OpName(op_), "expected out to be a tuple of ",
                           expected, " tensors, got ", list.size());
    for (const Tensor& t : list)
      check<ErrorKind::Type>(t.defined(), OpName(op_),
                             "expected out to be a tuple of tensors, got None in it");
    return list;
  }

  int64_t integer(size_t i, int64_t otherwise = 0) const {
    return slots_[i] ? to_int(op_, slots_[i]) : otherwise;
  }
  double real(size_t i, double otherwise = 0) const {
    return slots_[i] ? to_double(op_, slots_[i]) : otherwise;
  }
  bool boolean(size_t i, bool otherwise = false) const {
    return slots_[i] ? to_boolean(slots_[i]) : otherwise;
  }
  Scalar scalar(size_t i, const Scalar& otherwise = {}) const {
    return slots_[i] ? to_scalar(op_, slots_[i]) : otherwise;
  }
  std::string_view text(size_t i, std::string_view otherwise = {}) const {
    return slots_[i] ? utf8(slots_[i]) : otherwise;
  }
  ScalarType dtype(size_t i, ScalarType otherwise = {}) const {
    return slots_[i] ? *as_dtype(slots_[i]) : otherwise;
  }
  Device device(size_t i, Device otherwise = {}) const {
    return slots_[i] ? to_device(slots_[i]) : otherwise;
  }
  Layout layout(size_t i, Layout otherwise = {}) const {
    return slots_[i] ? reinterpret_cast<LayoutObject*>(slots_[i])->value : otherwise;
  }
  MemoryFormat memory_format(size_t i, MemoryFormat otherwise = {}) const {
    return slots_[i] ? reinterpret_cast<MemoryFormatObject*>(slots_[i])->value : otherwise;
  }
  Generator generator(size_t i) const { return has(i) ? to_generator(slots_[i]) : Generator(); }

  DimVector ints(size_t i, int length = 0, IntList otherwise = {}) const {
    DimVector out;
    if (!has(i))
      out.assign(otherwise.begin(), otherwise.end());
    else if (slots_[i] == detail::spread())
      detail::read_spread(op_, arguments_, out);
    else
      detail::read_ints(op_, slots_[i], length, out);
    return out;
  }
  std::vector<double> reals(size_t i) const {
    return has(i) ? detail::read_doubles(op_, slots_[i]) : std::vector<double>();
  }
  std::vector<Scalar> scalars(size_t i) const { return detail::read_scalars(op_, slots_[i]); }
  std::optional<std::vector<double>> maybe_reals(size_t i) const {
    return maybe(i, std::optional<std::vector<double>>(), [&] { return reals(i); });
  }
  template <size_t L>
  std::array<bool, L> booleans(size_t i, std::array<bool, L> otherwise = {}) const {
    if (slots_[i]) detail::read_bools(op_, slots_[i], otherwise.data(), L);
    return otherwise;
  }

  // For types with '?': None gives nothing; an omitted argument gives `otherwise`.
  std::optional<int64_t> maybe_integer(size_t i, std::optional<int64_t> otherwise = {}) const {
    return maybe(i, otherwise, [&] { return integer(i); });
  }
  std::optional<double> maybe_real(size_t i, std::optional<double> otherwise = {}) const {
    return maybe(i, otherwise, [&] { return real(i); });
  }
  std::optional<bool> maybe_boolean(size_t i, std::optional<bool> otherwise = {}) const {
    return maybe(i, otherwise, [&] { return boolean(i); });
  }
  std::optional<Scalar> maybe_scalar(size_t i, std::optional<Scalar> otherwise = {}) const {
    return maybe(i, otherwise, [&] { return scalar(i); });
  }
  std::optional<std::string_view> maybe_text(size_t i,
                                             std::optional<std::string_view> otherwise = {}) const {
    return maybe(i, otherwise, [&] { return text(i); });
  }
  std::optional<ScalarType> maybe_dtype(size_t i, std::optional<ScalarType> otherwise = {}) const {
    return maybe(i, otherwise, [&] { return dtype(i); });
  }
  std::optional<Device> maybe_device(size_t i, std::optional<Device> otherwise = {}) const {
    return maybe(i, otherwise, [&] { return device(i); });
  }
  // For a tensor that is made from options alone.
  std::optional<Device> device_of_new(size_t i) const {
    return has(i) ? device(i) : default_device();
  }
  std::optional<Layout> maybe_layout(size_t i, std::optional<Layout> otherwise = {}) const {
    return maybe(i, otherwise, [&] { return layout(i); });
  }
  std::optional<MemoryFormat> maybe_memory_format(
      size_t i, std::optional<MemoryFormat> otherwise = {}) const {
    return maybe(i, otherwise, [&] { return memory_format(i); });
  }
  OptionalInts maybe_ints(size_t i, int length = 0, OptionalIntList otherwise = {}) const {
    if (!slots_[i]) return {otherwise ? std::optional<DimVector>(*otherwise) : std::nullopt};
    if (slots_[i] == Py_None) return {};
    return {ints(i, length)};
  }

 private:
  template <class T, class F>
  std::optional<T> maybe(size_t i, const std::optional<T>& otherwise, F&& read) const {
    if (!slots_[i]) return otherwise;
    if (slots_[i] == Py_None) return std::nullopt;
    return read();
  }

  const char* op_;
  detail::Arguments arguments_;
  PyObject* slots_[N];
  int overload_;
  std::array<Tensor, N> owned_;  // tensors made of numbers and arrays
};

}  // namespace treadle::python
