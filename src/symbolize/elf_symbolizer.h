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
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "profile/model.h"
#include "symbolize/dwarf/debug_info.h"
#include "symbolize/elf_module.h"
#include "symbolize/symbol_answers.h"
#include "symbolize/symbol_index.h"

namespace heapprofd {

class ElfSymbolizer {
 public:
  // Errors: see ElfModule::Open.
  static Result<ElfSymbolizer> Open(const ModuleFile& file, DebugFiles debug_files = {});

  // Has debug information read by llvm-symbolizer (the path of the program) from now on.
  void UseLlvmSymbolizer(const std::string& program, const ModuleFile& file);

  // `rel_pcs` are addresses inside the instructions, in any order, best all of a module
  // at once: the work is mostly per compile unit. Adds an answer to `table` for each: its
  // lines, innermost function first, the last being the function that was really called
  // and whose system_name is set. Empty: unknown. Errors only with UseLlvmSymbolizer.
  Status Symbolize(std::span<const uint64_t> rel_pcs, SymbolAnswers& table);

  bool has_debug_info() const { return debug_info_.has_value(); }

 private:
  explicit ElfSymbolizer(std::unique_ptr<ElfModule> module);
  Status SymbolizeByLlvm(std::span<const uint64_t> rel_pcs, SymbolAnswers& table);
  void AddAnswer(uint64_t rel_pc, DebugInfo::Lines& lines, SymbolAnswers& table);
  SymbolAnswers::TextId DemangledSymbol(SymbolAnswers::TextId symbol,
                                        SymbolAnswers& table);

  std::unique_ptr<ElfModule> module_;
  SymbolIndex symbols_;
  std::optional<DebugInfo> debug_info_;
  // Of the current Symbolize(): demangling is slow.
  std::unordered_map<SymbolAnswers::TextId, SymbolAnswers::TextId> demangled_;
  std::string llvm_symbolizer_;  // empty: libdw
  int llvm_file_ = -1;           // what it is to read
};

}  // namespace heapprofd
