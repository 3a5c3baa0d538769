// Which functions of a profile stayed without a name, and why.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profile/model.h"

namespace heapprofd {

// In traces as these numbers.
enum class NoSymbolsReason : uint8_t {
  kNone,             // every frame has a name
  kNotFound,         // no file
  kUnreadable,       // no ELF file
  kBuildIdMismatch,  // another version of the file is at its place
  kNoSymbols,        // the symbols of the file do not cover all addresses: it is stripped
  kWorkerDied,       // the file broke its reader
  kCancelled,        // nobody waited for it
};

// All mappings of one file in one profile.
struct ModuleSymbols {
  std::string path;
  std::string build_id = {};             // raw bytes
  std::vector<MappingId> mappings = {};  // lets the caller add up the bytes
  uint64_t frames = 0;
  uint64_t unnamed_frames = 0;
  bool has_debug_info = false;
  bool from_cache = false;  // at least in part: no file was opened
  NoSymbolsReason reason = NoSymbolsReason::kNone;
  // For people, with the remedy: "Could not find /x/libfoo.so (Build ID: ab12): ...".
  // Empty: every frame has a name.
  std::string error;
};

struct SymbolizeReport {
  std::vector<ModuleSymbols>
      modules;  // in the order of their first mapping; only those with frames
};

}  // namespace heapprofd
