// ModuleSymbols: functions and lines of addresses, to be put to the frames that have
// them.
//
// Perfetto's importer wants symbols behind the frames that they describe. Here they may
// stand anywhere in the trace, in any number of files; the last ones for an address
// count.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/column.h"
#include "tables/trace_builder.h"

namespace heapprofd {

class SymbolImporter {
 public:
  explicit SymbolImporter(TraceBuilder* builder) : builder_(builder) {}

  // A serialized ModuleSymbols.
  void Add(std::string_view message);

  // To the frames that are there now.
  void Apply();

 private:
  struct Entry {
    uint32_t module;
    uint32_t set;  // later ones are larger
    uint64_t rel_pc;

    friend bool operator<(const Entry& a, const Entry& b) {
      return std::tie(a.module, a.rel_pc, a.set) < std::tie(b.module, b.rel_pc, b.set);
    }
  };

  void AddAddress(uint32_t module, std::string_view message);

  TraceBuilder* builder_;
  std::map<std::pair<StringId, StringId>, uint32_t> modules_;  // name, build id
  Column<Entry> entries_;
};

}  // namespace heapprofd
