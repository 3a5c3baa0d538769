// Function symbols of one module: address -> name.
//
// An address outside of every symbol is unknown. (A stripped library exports few
// functions; to give an address to the nearest one below would blame the wrong function.)
// Symbols without a size, as assembler sources have them, reach to the next symbol of
// their section. Of several names for one function the shortest with the fewest leading
// underscores is taken, exported names first: malloc, not __libc_malloc.
#pragma once

#include <span>
#include <string_view>

#include "symbolize/elf_module.h"
#include "symbolize/range_map.h"

namespace heapprofd {

class SymbolIndex {
 public:
  SymbolIndex() = default;

  // The images must outlive the index: names are views into their string tables.
  explicit SymbolIndex(std::span<const ElfModule::Image> images);

  // The linker's name without its version; empty when unknown.
  std::string_view Find(uint64_t address) const;

 private:
  RangeMap<const char*> names_;
};

}  // namespace heapprofd
