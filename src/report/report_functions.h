// The functions of all trees of a report, each once, with their texts, each once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/row_index.h"
#include "base/string_pool.h"
#include "query/stacks/function_table.h"
#include "tables/imported_trace.h"

namespace heapprofd {

class ReportFunctions {
 public:
  // Rows that stand for no function of the program.
  static constexpr uint32_t kRoot = 0;     // of each tree: all of it
  static constexpr uint32_t kLeftOut = 1;  // callees too small for the report

  explicit ReportFunctions(const ImportedTrace& trace);

  // The row of a function of a tree whose names are in `names`.
  uint32_t Row(const StringPool& names, const TreeFunction& function);

  size_t TextBytes() const;

  // Texts: their lengths (column), their bytes (block). Functions: name, module, source
  // file (texts), line, flags (columns).
  void AppendTo(std::string& out) const;

  // Bits of the flags.
  static constexpr uint32_t kIsAllocator = 1;  // holds memory for its callers

 private:
  struct Function {
    uint32_t name;
    uint32_t module;
    uint32_t file;
    uint32_t line;

    bool operator==(const Function&) const = default;
  };

  static uint64_t HashOf(const Function& function) {
    return Mix((uint64_t{function.name} << 32 | function.module) ^
               Mix(uint64_t{function.file} << 32 | function.line));
  }

  uint32_t TraceText(StringId id);

  const ImportedTrace& trace_;
  StringPool texts_;
  std::vector<uint32_t> of_trace_;  // by its ids: the text here, or kNoId
  std::vector<Function> functions_;
  RowIndex index_;
};

}  // namespace heapprofd
