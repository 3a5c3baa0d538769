// Fills in the lines of profiles' frames, and tells what stayed without a name, why, and
// what to do about it. What recorder and converter use of this folder.
//
// ELF and DWARF are read in worker processes, a module at a time in each: a file that is
// truncated under the reader, or made to break it, costs the names of that module and
// nothing else. Answers of modules with debug information are kept in a disk cache by
// build id.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/scoped_fd.h"
#include "base/status.h"
#include "profile/code_table.h"
#include "profile/model.h"
#include "profile/symbolize_report.h"
#include "symbolize/debug_files.h"
#include "symbolize/symbol_finder.h"

namespace heapprofd {

enum class SymbolBackend : uint8_t { kLibdw, kLlvmSymbolizer };

struct SymbolizeOptions {
  // Directories with symbol files: see symbol_finder.h.
  std::vector<std::string> binary_path;
  LookupMode lookup = LookupMode::kFindThenIndex;
  SymbolBackend backend = SymbolBackend::kLibdw;
  std::string llvm_symbolizer;                  // path of the program, for that backend
  std::string debug_path = kStandardDebugPath;  // see debug_files.h
  std::string cache_directory;                  // empty: nothing is kept
  // Readable as soon as nobody waits for names any more: those that are missing then stay
  // missing. -1: there is none.
  int cancel_fd = -1;
  // Called several times a second meanwhile: how much of the work is done, 0 to 1.
  std::function<void(double share)> on_progress = {};

  // PERFETTO_BINARY_PATH, PERFETTO_SYMBOLIZER_MODE (find, index), HEAPPROFD_SYMBOLIZER
  // (libdw, llvm-symbolizer) and the user's cache directory. kInvalidArgument for values
  // that have no meaning.
  static Result<SymbolizeOptions> FromEnvironment();
};

// The file of a mapping as the process had it, or an invalid descriptor when there is
// none any more. Called in a worker. What is opened needs no check: a file with another
// build id than the mapping's is not used.
using ModuleOpener = std::function<ScopedFd(const Mapping&)>;

struct ProfileToSymbolize {
  CodeTable code;
  // Empty: the mapping's path on this machine is tried.
  ModuleOpener open_module;
};

// One report per profile. Frames that already have lines, and those in anonymous mappings
// and in "[vdso]" and the like, are left as they are. Can be repeated as frames are
// added.
std::vector<SymbolizeReport> SymbolizeProfiles(
    std::span<const ProfileToSymbolize> profiles, const SymbolizeOptions& options);

}  // namespace heapprofd
