// Symbolization of one module: addresses to functions, inlined calls, files and lines.
//
// From DWARF where the module or its debug file has it, else one function name from the
// symbol tables. All that is opened and indexed is held until the symbolizer goes: open
// one module after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "profile/model.h"
#include "symbolize/debug_info.h"
#include "symbolize/elf_module.h"
#include "symbolize/symbol_index.h"

namespace heapprofd {

class ElfSymbolizer {
 public:
  // Errors: see ElfModule::Open.
  static Result<ElfSymbolizer> Open(const ModuleFile& file,
                                    const std::string& debug_path = kStandardDebugPath);

  // `rel_pcs` are addresses inside the instructions, in any order, best all of a module
  // at once: the work is mostly per compile unit. One answer per address: its lines,
  // innermost function first, the last being the function that was really called and
  // whose system_name is set. Empty: unknown.
  std::vector<std::vector<SourceLine>> Symbolize(std::span<const uint64_t> rel_pcs);

  bool has_debug_info() const { return debug_info_.has_value(); }

 private:
  explicit ElfSymbolizer(std::unique_ptr<ElfModule> module);
  void NameBySymbol(uint64_t rel_pc, std::vector<SourceLine>& lines) const;

  std::unique_ptr<ElfModule> module_;
  SymbolIndex symbols_;
  std::optional<DebugInfo> debug_info_;
};

}  // namespace heapprofd
