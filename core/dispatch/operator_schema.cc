// The cache of the operators' parsed schemas. Operators are never freed, so their addresses are the
// keys.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/dispatch/operator_schema.h"

#include "core/base/address_map.h"

namespace treadle {

const schema::FunctionSchema& schema_of(const Operator& op) {
  static auto* parsed = new AddressMap<schema::FunctionSchema>;
  return parsed->ensure(&op,
                        [&] { return schema::parse_schema(std::string_view(op.info().schema)); });
}

}  // namespace treadle
