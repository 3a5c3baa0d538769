#include "symbolize/dwarf/debug_info.h"

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

// The entry that an instance was made from; the entry itself when there is none.
Dwarf_Die OriginOf(Dwarf_Die* function) {
  Dwarf_Attribute attribute;
  Dwarf_Die origin;
  if (dwarf_attr(function, DW_AT_abstract_origin, &attribute) != nullptr &&
      dwarf_formref_die(&attribute, &origin) != nullptr)
    return origin;
  return *function;
}

}  // namespace

// The answers for the addresses of one unit.
class DebugInfo::UnitAnswers {
 public:
  UnitAnswers(DebugInfo& debug_info, const Unit& unit, SymbolAnswers& texts)
      : debug_info_(debug_info),
        unit_(unit),
        functions_(FindFunctions(unit)),
        texts_(texts),
        no_text_(texts.Intern("")) {}

  void Find(std::span<const Query> queries,
            const std::function<void(size_t, Lines&)>& found) {
    std::vector<uint64_t> addresses;
    addresses.reserve(queries.size());
    for (const Query& query : queries)
      addresses.push_back(query.address);
    const UnitScan scan(functions_, addresses);
    const LineTable table(unit_.bytes.root, debug_info_.line_sections_, addresses);
    names_.resize(scan.nodes());
    Lines lines;
    for (size_t i = 0; i < queries.size(); ++i) {
      Describe(scan, table, i, lines);
      found(queries[i].index, lines);
    }
  }

 private:
  void Describe(const UnitScan& scan,
                const LineTable& table,
                size_t index,
                Lines& lines) {
    uint32_t node = scan.Innermost(index);
    SourcePosition position = table.Find(index);
    lines.clear();
    if (node == UnitScan::kNone && position.file != nullptr)
      lines.push_back({no_text_, no_text_, FileId(position.file), position.line});
    while (node != UnitScan::kNone) {
      const UnitScan::Node& call = scan.node(node);
      std::optional<FunctionName>& name = names_[node];
      if (!name) {
        Dwarf_Die die = call.die;
        name = debug_info_.NameOf(&die, texts_);
      }
      lines.push_back(
          {name->function, name->system_name, FileId(position.file), position.line});
      // Where the caller, next in the chain, called this one.
      position = {.file = table.FileName(call.call_file), .line = call.call_line};
      node = call.parent;
    }
  }

  SymbolAnswers::TextId FileId(const char* file) {
    if (file == nullptr)
      return no_text_;
    const auto [entry, is_new] = files_.try_emplace(file);
    if (is_new)
      entry->second = texts_.Intern(file);
    return entry->second;
  }

  DebugInfo& debug_info_;
  const Unit& unit_;
  UnitBytes functions_;
  SymbolAnswers& texts_;
  SymbolAnswers::TextId no_text_;
  std::vector<std::optional<FunctionName>> names_;  // by node
  std::unordered_map<const char*, SymbolAnswers::TextId>
      files_;  // by address of the text
};

void DebugInfo::Find(std::span<const uint64_t> addresses,
                     SymbolAnswers& texts,
                     const std::function<void(size_t, Lines&)>& found) {
  names_by_entry_.clear();
  names_.clear();
  std::vector<Query> queries;
  queries.reserve(addresses.size());
  Lines nothing;
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (const auto unit = units_.Find(addresses[i])) {
      queries.push_back({.unit = *unit, .address = addresses[i], .index = i});
      continue;
    }
    nothing.clear();
    found(i, nothing);
  }
  std::ranges::sort(queries, {}, [](const Query& query) {
    return std::tuple(query.unit, query.address);
  });
  for (auto first = queries.begin(); first != queries.end();) {
    const auto last = std::find_if(first, queries.end(), [&](const Query& query) {
      return query.unit != first->unit;
    });
    UnitAnswers(*this, units_.unit(first->unit), texts).Find({first, last}, found);
    first = last;
  }
}

DebugInfo::FunctionName DebugInfo::NameOf(Dwarf_Die* function, SymbolAnswers& texts) {
  Dwarf_Die origin = OriginOf(function);
  const auto [by_entry, is_new_entry] = names_by_entry_.try_emplace(origin.addr);
  if (!is_new_entry)
    return by_entry->second;
  FunctionName result{.function = texts.Intern(""), .system_name = texts.Intern("")};
  const char* linkage_name = LinkageName(&origin);
  const char* name =
      linkage_name != nullptr ? linkage_name : FindString(&origin, DW_AT_name);
  if (name != nullptr) {
    const auto [entry, is_new] = names_.try_emplace(name);
    if (is_new)
      entry->second = {
          .function = texts.Intern(linkage_name == nullptr ? name : Demangle(name)),
          .system_name = texts.Intern(linkage_name == nullptr ? "" : name)};
    result = entry->second;
  }
  names_by_entry_[origin.addr] = result;
  return result;
}

}  // namespace heapprofd
