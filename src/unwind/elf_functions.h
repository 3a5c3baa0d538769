// Addresses of named functions and objects in an ELF file, by its symbol tables.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/code_segments.h"

namespace heapprofd {

struct ElfSymbol {
  uint64_t address = 0;  // ELF address
  uint64_t size = 0;     // bytes, 0: unknown
  bool is_function = false;
};

struct ElfContents {
  bool is_valid = false;  // an ELF file for this machine
  std::map<std::string, ElfSymbol, std::less<>> symbols;
  CodeSegments code;
};

// Which names are wanted; called for every defined symbol.
using IsWanted = bool (*)(std::string_view name);

// Bytes: a program with debug information for everything has a tenth.
inline constexpr uint64_t kMaxSymbolTables = uint64_t{1} << 30;

// The wanted symbols of the dynamic table and, for those missing there and with
// `use_full_table`, of the full one. `fd` is a file that may be anything; tables that
// together have more than `max_tables` bytes are passed over.
ElfContents ReadElf(int fd,
                    IsWanted is_wanted,
                    bool use_full_table,
                    uint64_t max_tables = kMaxSymbolTables);

// Offsets in the file of all symbols, and of static probes for debuggers (.note.stapsdt),
// that lie behind one of the offsets `functions`, by less than `reach` bytes.
std::vector<uint64_t> ReadPlaces(int fd,
                                 std::span<const uint64_t> functions,
                                 uint64_t reach,
                                 uint64_t max_tables = kMaxSymbolTables);

}  // namespace heapprofd
