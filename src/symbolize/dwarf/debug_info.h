// Functions, inlined calls, files and lines of many addresses of one module, from its
// DWARF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbolize/dwarf/line_table.h"
#include "symbolize/dwarf/unit_index.h"
#include "symbolize/dwarf/unit_scan.h"
#include "symbolize/symbol_answers.h"

namespace heapprofd {

class DebugInfo {
 public:
  using Lines = std::vector<SymbolAnswers::Line>;

  // `dwarf` must outlive this.
  explicit DebugInfo(Dwarf* dwarf)
      : units_(dwarf), line_sections_(LineSections::Of(dwarf)) {}

  // Calls found(index, lines) once for each of the addresses, in any order, with the
  // lines that DWARF knows, innermost first: texts are those of `texts`. An address in
  // code of an assembler has one line without a function; one that DWARF does not
  // describe has none.
  void Find(std::span<const uint64_t> addresses,
            SymbolAnswers& texts,
            const std::function<void(size_t index, Lines& lines)>& found);

 private:
  struct FunctionName {
    SymbolAnswers::TextId function;
    SymbolAnswers::TextId system_name;
  };

  // An address to be looked up, and its place in the question.
  struct Query {
    uint32_t unit;
    uint64_t address;
    size_t index;
  };

  class UnitAnswers;

  FunctionName NameOf(Dwarf_Die* function, SymbolAnswers& texts);

  UnitIndex units_;
  LineSections line_sections_;
  // Of the current Find(). By the entry that holds the name, and by the address of that
  // in the DWARF strings: demangling is slow, and the same function is inlined in many
  // places.
  std::unordered_map<const void*, FunctionName> names_by_entry_;
  std::unordered_map<const char*, FunctionName> names_;
};

}  // namespace heapprofd
