#include "symbolize/elf_symbolizer.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "symbolize/demangle.h"
#include "symbolize/llvm_symbolizer.h"

namespace heapprofd {
namespace {

// Of two names of one function, which is the one that people know it by?
bool IsPlainer(std::string_view a, std::string_view b) {
  const auto rank = [](std::string_view name) {
    return std::pair(std::min(name.find_first_not_of('_'), name.size()), name.size());
  };
  return rank(a) < rank(b);
}

}  // namespace

Result<ElfSymbolizer> ElfSymbolizer::Open(const ModuleFile& file,
                                          DebugFiles debug_files) {
  HPD_TRY_ASSIGN(auto module, ElfModule::Open(file, std::move(debug_files)));
  return ElfSymbolizer(std::move(module));
}

ElfSymbolizer::ElfSymbolizer(std::unique_ptr<ElfModule> module)
    : module_(std::move(module)), symbols_(module_->images()) {
  if (module_->dwarf() != nullptr)
    debug_info_.emplace(module_->dwarf());
}

void ElfSymbolizer::UseLlvmSymbolizer(const std::string& program,
                                      const ModuleFile& file) {
  llvm_symbolizer_ = program;
  const int separate = module_->separate_dwarf_fd();
  llvm_file_ = separate >= 0 ? separate : file.fd;
}

Status ElfSymbolizer::Symbolize(std::span<const uint64_t> rel_pcs, SymbolAnswers& table) {
  demangled_.clear();
  if (debug_info_ && !llvm_symbolizer_.empty())
    return SymbolizeByLlvm(rel_pcs, table);
  DebugInfo::Lines lines;
  if (!debug_info_) {
    for (const uint64_t rel_pc : rel_pcs) {
      lines.clear();
      AddAnswer(rel_pc, lines, table);
    }
    return {};
  }
  std::vector<uint64_t> addresses(rel_pcs.begin(), rel_pcs.end());
  for (uint64_t& address : addresses)
    address -= module_->dwarf_bias();
  debug_info_->Find(addresses, table, [&](size_t index, DebugInfo::Lines& found) {
    AddAnswer(rel_pcs[index], found, table);
  });
  return {};
}

Status ElfSymbolizer::SymbolizeByLlvm(std::span<const uint64_t> rel_pcs,
                                      SymbolAnswers& table) {
  std::vector<uint64_t> addresses(rel_pcs.begin(), rel_pcs.end());
  for (uint64_t& address : addresses)
    address -= module_->dwarf_bias();
  HPD_TRY_ASSIGN(const auto answers,
                 AskLlvmSymbolizer(llvm_symbolizer_, llvm_file_, addresses));
  DebugInfo::Lines lines;
  for (size_t i = 0; i < rel_pcs.size(); ++i) {
    lines.clear();
    for (const SourceLine& line : answers[i])
      lines.push_back({.function = table.Intern(line.function),
                       .system_name = table.Intern(line.system_name),
                       .file = table.Intern(line.file),
                       .line = line.line});
    AddAnswer(rel_pcs[i], lines, table);
  }
  return {};
}

SymbolAnswers::TextId ElfSymbolizer::DemangledSymbol(SymbolAnswers::TextId symbol,
                                                     SymbolAnswers& table) {
  const auto [entry, is_new] = demangled_.try_emplace(symbol);
  if (is_new)
    entry->second = table.Intern(Demangle(table.Text(symbol)));
  return entry->second;
}

// Decides on the name of the outermost function, the one that has symbols. DWARF's is
// taken if it is a mangled one. Else the symbol may know more: it is the only name of
// assembler code, the linkage name where a compiler leaves that out, or a better alias:
// malloc, where the source says __GI___libc_malloc.
void ElfSymbolizer::AddAnswer(uint64_t rel_pc,
                              DebugInfo::Lines& lines,
                              SymbolAnswers& table) {
  const SymbolAnswers::TextId no_text = table.Intern("");
  if (lines.empty())
    lines.push_back({no_text, no_text, no_text, 0});
  SymbolAnswers::Line& outermost = lines.back();
  if (outermost.system_name == no_text)
    outermost.system_name = outermost.function;
  if (outermost.system_name == outermost.function) {
    const SymbolAnswers::TextId symbol = table.Intern(symbols_.Find(rel_pc));
    const SymbolAnswers::TextId demangled = DemangledSymbol(symbol, table);
    if (outermost.function == no_text || demangled != symbol ||
        (symbol != no_text &&
         IsPlainer(table.Text(symbol), table.Text(outermost.function)))) {
      outermost.system_name = symbol;
      outermost.function = demangled;
    }
  }
  if (outermost.function == no_text)
    lines.clear();  // padding between functions has lines, too
  table.Add(rel_pc, lines);
}

}  // namespace heapprofd
