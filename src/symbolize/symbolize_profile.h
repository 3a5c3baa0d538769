// Fills in the lines of a profile's frames, module after module, and tells what stayed
// without a name and why: "3% of the samples have no symbols: libfoo.so is not the file
// that the process ran".
//
// Where the modules' files come from is the caller's business: the engine keeps them
// open, because the process and its files may be gone; a search through symbol
// directories can stand in its place.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/scoped_fd.h"
#include "profile/model.h"
#include "symbolize/elf_module.h"

namespace heapprofd {

// A readable file for this mapping, or an invalid descriptor when there is none any more.
// What is opened needs no check: a file with another build id than the mapping's is not
// used.
using ModuleOpener = std::function<ScopedFd(const Mapping&)>;

enum class NoSymbolsReason : uint8_t {
  kNone,             // every frame has a name
  kFileGone,         // the opener had no file
  kUnreadable,       // no ELF file
  kBuildIdMismatch,  // another version of the file is at its place
  kNoSymbols,        // the symbols of the file do not cover all addresses: it is stripped
};

// All mappings of one file.
struct ModuleSymbols {
  std::string path;
  std::string build_id;             // raw bytes
  std::vector<MappingId> mappings;  // lets the caller add up the bytes
  uint64_t frames = 0;
  uint64_t unnamed_frames = 0;
  bool has_debug_info = false;
  NoSymbolsReason reason = NoSymbolsReason::kNone;
  std::string error;  // for people; empty unless the file could not be used
};

struct SymbolizeReport {
  std::vector<ModuleSymbols>
      modules;  // in the order of their first mapping; only those with frames
};

// Frames that already have lines, and those in anonymous mappings and in "[vdso]" and the
// like, are left as they are. Can be repeated as frames are added.
SymbolizeReport SymbolizeProfile(TargetProfile& profile,
                                 const ModuleOpener& open_module,
                                 const std::string& debug_path = kStandardDebugPath);

}  // namespace heapprofd
