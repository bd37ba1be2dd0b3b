// Keeps the parsed schemas of operators. Operators are never freed, so their addresses name them.

#include "core/operator_schema.h"

#include <mutex>
#include <unordered_map>

#include "core/fork_safe_mutex.h"

namespace treadle {

const schema::FunctionSchema& schema_of(const Operator& op) {
  static auto* mutex = new ForkSafeMutex;
  static auto* known = new std::unordered_map<const Operator*, schema::FunctionSchema>;
  const std::lock_guard lock(*mutex);
  const auto [it, fresh] = known->try_emplace(&op);
  if (fresh) it->second = schema::parse_schema(std::string_view(op.info().schema));
  return it->second;
}

}  // namespace treadle
