// Dispatcher: all operators by name, run-time registration, and introspection (dump, invariants,
// dangling kernels).
//
// Ordinary calls never come here. It serves registration, boxed calls by name, tools and tests.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/dispatch/operator.h"

namespace treadle {

// A group of operators made by the generator.
struct OperatorShard {
  Operator* const* operators;
  size_t count;
};

class Dispatcher {
 public:
  static Dispatcher& instance();

  void add_shard(const OperatorShard& shard);
  void add_operator(Operator& op);  // ValueError when the name is taken, naming both places
  // Frees the name. The operator must live on: calls may still be in it.
  void remove_operator(Operator& op);

  Operator* find(std::string_view name) const;  // "aten::add.Tensor"; null when unknown
  Operator& at(std::string_view name) const;    // RuntimeError with near names when unknown
  std::vector<Operator*> operators() const;     // by name

  // Registers a boxed kernel by name. `schema` is what the kernel was written for: when it
  // disagrees with the operator's, the registration is rejected and the message shows both. dtypes
  // empty: all. A kernel for given dtypes wins over one for all, which one with a list is, too, if
  // its place is of KernelSource::DeviceLayout. The forms of one entry share their kernels, so the
  // name of any of them does. The kernel's context lives for as long as the program.
  void register_boxed(std::string_view name, std::string_view schema, DeviceType device,
                      Layout layout, const std::vector<ScalarType>& dtypes, BoxedKernel kernel,
                      KernelOrigin place);
  // Registers a kernel of another layout than strided, for all dtypes and devices. It serves the
  // operator's functional form; the other forms are made of it. Composites may have one, too.
  void register_layout(Operator& op, Layout layout, BoxedKernel kernel, KernelOrigin place);
  // Takes back what was registered for the device and layout; what the generator made shows again.
  void deregister(std::string_view name, DeviceType device, Layout layout);
  // For every operator without a kernel of the device's own.
  void register_device_fallback(DeviceType device, BoxedKernel kernel, KernelOrigin place);
  void deregister_device_fallback(DeviceType device);
  // Wraps the calls of operators on a layer: of all; of those which layers below autograd see
  // (EntryInfo::seen); of those which have kernels: not views, nor what is made of others.
  enum class Wraps : uint8_t { All, Seen, Kernels };
  void register_layer_fallback(Layer layer, BoxedKernel kernel, KernelOrigin place,
                               Wraps wraps = Wraps::All);

  // Text: one line per cell: "aten::add.Tensor  cpu strided float32  generated
  // native_functions.yaml:12".
  std::string dump(std::string_view name) const;
  // Broken rules, one text each; empty when all is well.
  std::vector<std::string> check_invariants() const;
  // Kernels the YAML names that nothing registered: "native_functions.yaml:120: ...".
  std::vector<std::string> dangling_kernels() const;
  // Errors of registrations made while libraries loaded; raises RuntimeError with them when there
  // are any.
  void check_registrations() const;
  void record_registration_error(std::string message);
  // Those errors, which are then forgotten: a library loaded next does not answer for them.
  std::vector<std::string> take_registration_errors();

  // Registers a row as register_row() of core/dispatch/operator.h does, but throws.
  void register_row(Operator& op, DeviceType device, Layout layout,
                    const std::array<void*, kMaxScalarTypes>& kernels, const KernelOrigin& place);
  const BoxedKernel* device_fallback(DeviceType device) const;  // null: none

 private:
  Dispatcher();
  ~Dispatcher();
  struct State;
  State* state_;
};

}  // namespace treadle
