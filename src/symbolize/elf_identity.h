// What an ELF file says about itself in a few hundred bytes: enough to choose among
// files without opening them for good.
//
// Read with pread only, never mapped, and at most a megabyte of it: symbol directories
// hold whatever people have put there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace heapprofd {

// The first executable segment.
struct CodeSegment {
  uint64_t address = 0;    // p_vaddr
  uint64_t alignment = 1;  // p_align, 1 for 0
};

struct ElfIdentity {
  std::string build_id;         // raw bytes, empty when the file has none
  bool has_debug_info = false;  // .debug_info, compressed or not
  std::optional<CodeSegment> code;
};

// Nothing when this is no ELF file (little-endian, 32 or 64 bits).
std::optional<ElfIdentity> IdentifyElf(int fd);

}  // namespace heapprofd
