// The variables of a caller that steer how his recording is finished: all that he may
// send, and all that a service takes. Others would steer libraries in the finisher (LD_*,
// GCONV_PATH, LOCPATH, OPENSSL_CONF, MALLOC_*, SQLITE_TMPDIR, CURL_*).
#pragma once

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace heapprofd {

inline constexpr std::array kFinisherVariables = {
    "PERFETTO_BINARY_PATH",      // directories with symbol files
    "PERFETTO_SYMBOLIZER_MODE",  // how they are searched
    "PERFETTO_PROGUARD_MAP",     // mapping files of Java names
    "NO_COLOR",                  // whether the summary may have colours
    "TERM",                      // the same
    "HEAPPROFD_SYMBOLIZER",      // libdw, or llvm-symbolizer of PATH
    "DEBUGINFOD_URLS",           // servers that are asked
    "XDG_CACHE_HOME",            // where the symbol cache is
    "HOME",                      // the same
    "HEAPPROFD_STATS_JSON",      // a file of figures that is written
    "PATH",                      // where llvm-symbolizer is looked for
    "LANG",                      // whether the summary may have more than ASCII
    "LC_ALL",
    "LC_CTYPE"};

constexpr bool IsFinisherVariable(std::string_view name) {
  for (const std::string_view allowed : kFinisherVariables) {
    if (name == allowed)
      return true;
  }
  return false;
}

// Gives this process, a finisher, what its command has of these variables, and nothing that
// its service was started with. The strings must outlive it.
inline void TakeFinisherEnvironment(const std::vector<std::string>& environment) {
  for (const char* name : kFinisherVariables)
    unsetenv(name);
  for (const std::string& entry : environment)
    putenv(const_cast<char*>(entry.c_str()));
}

}  // namespace heapprofd
