// What an ELF file says about itself in a few hundred bytes: enough to choose among
// files without opening them for good.
//
// Read with pread only, never mapped, and at most a megabyte of it: symbol directories
// hold whatever people have put there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/code_segments.h"

namespace heapprofd {

struct ElfIdentity {
  std::string build_id;          // raw bytes, empty when the file has none
  bool has_debug_info = false;   // .debug_info, compressed or not
  bool has_split_dwarf = false;  // a .dwo or .dwp file
  CodeSegments code;
  // Code is in this very file. Files with debug information alone have its segments, too,
  // but at made-up offsets.
  bool has_code = false;
  // .gnu_debuglink: the file that has its debug information, and the CRC-32 of that.
  // Empty: it names none.
  std::string debug_link;
  uint32_t debug_link_crc = 0;
  // .gnu_debugaltlink: the file to which dwz has moved what several files share.
  std::string shared_debug_link;
  std::string shared_debug_build_id;  // raw bytes
};

// Nothing when this is no ELF file (little-endian, 32 or 64 bits).
std::optional<ElfIdentity> IdentifyElf(int fd);

}  // namespace heapprofd
