#include "symbolize/debug_info.h"

#include <dwarf.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "symbolize/demangle.h"

namespace heapprofd {
namespace {

// Attributes of an inlined or out-of-line instance may stand at the abstract function or
// the declaration.
const char* FindString(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  return dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
}

const char* LinkageName(Dwarf_Die* function) {
  const char* name = FindString(function, DW_AT_linkage_name);
  return name != nullptr ? name : FindString(function, DW_AT_MIPS_linkage_name);
}

uint64_t FindNumber(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  return dwarf_formudata(dwarf_attr(die, name, &attribute), &value) == 0 ? value : 0;
}

SourcePosition CallPosition(Dwarf_Die* call, const LineTable& lines) {
  return {.file = lines.FileName(FindNumber(call, DW_AT_call_file)),
          .line = static_cast<uint32_t>(FindNumber(call, DW_AT_call_line))};
}

}  // namespace

DebugInfo::DebugInfo(Dwarf* dwarf) : units_(dwarf) {}

std::vector<std::vector<SourceLine>> DebugInfo::Find(
    std::span<const uint64_t> addresses) {
  std::vector<std::vector<SourceLine>> answer(addresses.size());
  std::vector<Query> queries;
  queries.reserve(addresses.size());
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (const auto unit = units_.Find(addresses[i]))
      queries.push_back({.unit = *unit, .address = addresses[i], .position = i});
  }
  std::ranges::sort(queries, {}, [](const Query& query) {
    return std::tuple(query.unit, query.address);
  });
  for (auto first = queries.begin(); first != queries.end();) {
    const auto last = std::find_if(first, queries.end(), [&](const Query& query) {
      return query.unit != first->unit;
    });
    FindInUnit({first, last}, answer);
    first = last;
  }
  return answer;
}

void DebugInfo::FindInUnit(std::span<const Query> queries,
                           std::vector<std::vector<SourceLine>>& answer) {
  const Unit& unit = units_.unit(queries.front().unit);
  const FunctionRoot root = FindFunctionRoot(unit);
  WalkBudget budget = root.max_entries;
  const FunctionIndex functions(root.die, budget);
  const LineTable lines(unit.die);
  std::optional<uint32_t>
      current;  // function of `inlined`; the queries are in order of addresses
  std::optional<InlineTree> inlined;
  for (const Query& query : queries) {
    const auto function = functions.Find(query.address);
    std::vector<Dwarf_Die> chain;
    if (function) {
      if (current != function)
        inlined.emplace(functions.function(*function), budget);
      current = function;
      chain = inlined->Find(query.address);
      chain.push_back(functions.function(*function));
    }
    answer[query.position] = Describe(query.address, std::move(chain), lines);
  }
}

std::vector<SourceLine> DebugInfo::Describe(uint64_t address,
                                            std::vector<Dwarf_Die> chain,
                                            const LineTable& lines) {
  std::vector<SourceLine> answer;
  SourcePosition position = lines.Find(address);
  for (Dwarf_Die& die : chain) {
    const FunctionName& name = NameOf(&die);
    answer.push_back({.function = name.function,
                      .system_name = name.system_name,
                      .file = position.file == nullptr ? "" : position.file,
                      .line = position.line});
    position = CallPosition(
        &die, lines);  // where the caller, next in the chain, called this one
  }
  if (chain.empty() && position.file != nullptr)
    answer.push_back({.function = "",
                      .system_name = "",
                      .file = position.file,
                      .line = position.line});
  return answer;
}

const DebugInfo::FunctionName& DebugInfo::NameOf(Dwarf_Die* function) {
  static const FunctionName unknown;
  const char* linkage_name = LinkageName(function);
  const char* name =
      linkage_name != nullptr ? linkage_name : FindString(function, DW_AT_name);
  if (name == nullptr)
    return unknown;
  const auto [entry, is_new] = names_.try_emplace(name);
  if (is_new)
    entry->second = {.function = linkage_name == nullptr ? name : Demangle(name),
                     .system_name = linkage_name == nullptr ? "" : name};
  return entry->second;
}

}  // namespace heapprofd
