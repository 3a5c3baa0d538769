// Finds and opens the files that hold a module's debug information when the module itself
// does not: before its parser, which may open nothing, has seen a byte of any of them.
//
// In the order of libdwfl, which it replaces because that opens while it parses:
//   1. the user's symbol directories (symbol_finder.h), by name and build id
//   2. .build-id/xx/yyyy.debug in each absolute directory of the debug path
//   3. what .gnu_debuglink names, by the debug path
//   4. debuginfod, when DEBUGINFOD_URLS names servers
// A file with another build id is never taken; where there is none, its CRC decides.
#pragma once

#include <string>

#include "base/scoped_fd.h"
#include "symbolize/symbol_finder.h"

namespace heapprofd {

struct ModuleFile {
  int fd = -1;       // readable, stays with the caller
  std::string path;  // as the target sees it: names the file and says where to look for
                     // debug links
  std::string build_id;  // raw bytes the file must have; empty: the file must have none
};

// Directories for separate debug files, as libdwfl writes them: "" is the file's own
// directory, a relative name is below that, and below absolute ones is the path of the
// file again. A '+' or '-' in front means nothing here: the CRC is always looked at.
inline constexpr char kStandardDebugPath[] = "+:.debug:/usr/lib/debug";

struct DebugFiles {
  ScopedFd debug;  // invalid: the module's own, or none
  std::string debug_path;
  ScopedFd shared;  // dwz's
  std::string shared_path;
};

// `finder` may be null.
DebugFiles FindDebugFiles(const ModuleFile& file,
                          const std::string& debug_path,
                          SymbolFinder* finder);

}  // namespace heapprofd
