#include "symbolize/elf_symbolizer.h"

#include <fcntl.h>

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
                                          const std::string& debug_path,
                                          SymbolFinder* finder) {
  HPD_TRY_ASSIGN(auto module, ElfModule::Open(file, debug_path, finder));
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
  if (const std::string path = module_->debug_file_path(); !path.empty())
    llvm_file_ = ScopedFd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!llvm_file_.valid())
    llvm_file_ = ScopedFd(fcntl(file.fd, F_DUPFD_CLOEXEC, 0));
}

Result<std::vector<std::vector<SourceLine>>> ElfSymbolizer::TrySymbolize(
    std::span<const uint64_t> rel_pcs) {
  std::vector<std::vector<SourceLine>> answer(rel_pcs.size());
  if (debug_info_) {
    std::vector<uint64_t> addresses(rel_pcs.begin(), rel_pcs.end());
    for (uint64_t& address : addresses)
      address -= module_->dwarf_bias();
    if (llvm_symbolizer_.empty()) {
      answer = debug_info_->Find(addresses);
    } else {
      HPD_TRY_ASSIGN(answer,
                     AskLlvmSymbolizer(llvm_symbolizer_, llvm_file_.get(), addresses));
    }
  }
  for (size_t i = 0; i < rel_pcs.size(); ++i)
    NameBySymbol(rel_pcs[i], answer[i]);
  return answer;
}

// Decides on the name of the outermost function, the one that has symbols. DWARF's is
// taken if it is a mangled one. Else the symbol may know more: it is the only name of
// assembler code, the linkage name where a compiler leaves that out, or a better alias:
// malloc, where the source says __GI___libc_malloc.
void ElfSymbolizer::NameBySymbol(uint64_t rel_pc, std::vector<SourceLine>& lines) const {
  if (lines.empty())
    lines.emplace_back();
  SourceLine& outermost = lines.back();
  if (outermost.system_name.empty())
    outermost.system_name = outermost.function;
  if (outermost.system_name == outermost.function) {
    const std::string_view symbol = symbols_.Find(rel_pc);
    std::string demangled = Demangle(symbol);
    if (outermost.function.empty() || demangled != symbol ||
        (!symbol.empty() && IsPlainer(symbol, outermost.function))) {
      outermost.system_name = symbol;
      outermost.function = std::move(demangled);
    }
  }
  if (outermost.function.empty())
    lines.clear();  // padding between functions has lines, too
}

}  // namespace heapprofd
