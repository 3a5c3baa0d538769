// The functions of a trace's frames, by the names that people know: an address can hold
// several, inlined into each other.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/column.h"
#include "base/string_pool.h"
#include "query/stacks/function_table.h"
#include "tables/imported_trace.h"

namespace heapprofd {

enum class NameStyle : uint8_t {
  kAsRecorded,  // as linkers know the functions
  kDemangled,
};

class FrameFunctions {
 public:
  // The trace must outlive this and names().
  FrameFunctions(const ImportedTrace& trace, NameStyle names);

  // How many functions the frame has: at least one.
  uint32_t CountAt(uint32_t frame) const;

  // Rows of table(), the innermost first. The span ends with the next call.
  std::span<const uint32_t> At(uint32_t frame) {
    const Run& run = runs_[frame];
    if (run.count == 0)
      Add(frame);
    return functions_.span().subspan(run.first, run.count);
  }

  FunctionTable& table() { return table_; }

  const FunctionTable& table() const { return table_; }

  // Where the names of the table are.
  std::shared_ptr<const StringPool> names() const;

 private:
  // In functions_. No functions: nobody wanted them yet.
  struct Run {
    uint32_t first = 0;
    uint32_t count = 0;
  };

  void Add(uint32_t frame);
  StringId NameId(StringId name);

  const ImportedTrace& trace_;
  const NameStyle style_;
  FunctionTable table_;
  std::shared_ptr<StringPool> demangled_;
  std::vector<StringId> name_ids_;  // trace's id -> demangled_'s
  Column<Run> runs_;                // by frame
  Column<uint32_t> functions_;      // of the frames
};

}  // namespace heapprofd
