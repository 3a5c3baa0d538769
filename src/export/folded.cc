// A heap as folded stacks: "main;Parse;Read 4096", one line per stack, outermost function
// first, without the allocation function at its end. flamegraph.pl, inferno, speedscope
// and the Perfetto UI read it.

#include <map>
#include <vector>

#include "export/formats.h"
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

// Lines in the order of their text; stacks with the same names are one line, stacks with
// the value 0 none.
std::string EncodeFolded(const ExportedHeap& heap) {
  const StackFunctions stack_functions(heap.profile);
  std::vector<std::string> names;
  names.reserve(stack_functions.functions().size());
  for (const ExportedFunction& function : stack_functions.functions())
    names.push_back(Unseparated(function.name));
  std::map<std::string, int64_t> stacks;
  for (const auto& [callsite, totals] : heap.dump.callsites) {
    const int64_t value = ValueOf(totals, heap.view);
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
