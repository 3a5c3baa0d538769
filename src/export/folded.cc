#include "export/folded.h"

#include <map>
#include <vector>

#include "export/stack_functions.h"

namespace heapprofd {
namespace {

// The format has no quoting: what separates frames and lines may not be in a name.
std::string Unseparated(std::string name) {
  for (char& c : name) {
    if (c == ';')
      c = ':';
    else if (static_cast<unsigned char>(c) < ' ')
      c = ' ';
  }
  return name;
}

}  // namespace

std::string EncodeFolded(const TargetProfile& profile, const HeapDump& dump, View view) {
  const StackFunctions stack_functions(profile);
  std::vector<std::string> names;
  names.reserve(stack_functions.functions().size());
  for (const ExportedFunction& function : stack_functions.functions())
    names.push_back(Unseparated(function.name));
  std::map<std::string, int64_t> stacks;
  for (const auto& [callsite, totals] : dump.callsites) {
    const int64_t value = ValueOf(totals, view);
    if (value == 0)
      continue;
    std::string stack;
    for (const uint32_t function : stack_functions.Of(callsite))
      stack.append(stack.empty() ? "" : ";").append(names[function]);
    stacks[stack] += value;
  }
  std::string text;
  for (const auto& [stack, value] : stacks)
    text.append(stack).append(" ").append(std::to_string(value)).append("\n");
  return text;
}

}  // namespace heapprofd
