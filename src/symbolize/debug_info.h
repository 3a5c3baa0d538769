// Functions, inlined calls, files and lines of many addresses of one module, from its
// DWARF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "profile/model.h"
#include "symbolize/function_index.h"
#include "symbolize/unit_index.h"

namespace heapprofd {

class DebugInfo {
 public:
  // `dwarf` must outlive this.
  explicit DebugInfo(Dwarf* dwarf);

  // For each address the lines that DWARF knows, innermost first, in the order of the
  // addresses. An address in code of an assembler has one line without a function; one
  // that DWARF does not describe has none.
  std::vector<std::vector<SourceLine>> Find(std::span<const uint64_t> addresses);

 private:
  struct FunctionName {
    std::string function;
    std::string system_name;
  };

  // An address to be looked up, and its place in the answer.
  struct Query {
    uint32_t unit;
    uint64_t address;
    size_t position;
  };

  void FindInUnit(std::span<const Query> queries,
                  std::vector<std::vector<SourceLine>>& answer);
  std::vector<SourceLine> Describe(uint64_t address,
                                   std::vector<Dwarf_Die> chain,
                                   const LineTable& lines);
  const FunctionName& NameOf(Dwarf_Die* function);

  UnitIndex units_;
  // By the address of the linkage name, or of the plain one, in the DWARF strings:
  // demangling is slow, and the same function is inlined in many places.
  std::unordered_map<const char*, FunctionName> names_;
};

}  // namespace heapprofd
