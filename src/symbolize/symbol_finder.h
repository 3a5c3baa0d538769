// Finds the file that holds the symbols of a module, in the directories that the user
// names by PERFETTO_BINARY_PATH (several are separated by ':').
//
// For "/system/lib/base.apk!foo.so" with build id abcd1234 each directory is asked for
//   1. system/lib/base.apk!foo.so     2. system/lib/foo.so
//   3. base.apk!foo.so                4. foo.so
//   5. .build-id/ab/cd1234.debug
// and then, unless PERFETTO_SYMBOLIZER_MODE is "find", for any file below it that has
// the build id. With PERFETTO_SYMBOLIZER_MODE=index only that is done. A file with
// another build id is never the answer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/scoped_fd.h"
#include "symbolize/build_id_index.h"

namespace heapprofd {

enum class LookupMode : uint8_t {
  kFindThenIndex,
  kFind,   // by path only
  kIndex,  // by build id only
};

enum class WantedSymbols : uint8_t {
  kAny,        // the first file will do
  kDebugInfo,  // only one with DWARF
};

// A file that was looked at, and why it was not taken.
struct RejectedFile {
  enum class Reason : uint8_t { kBuildIdMismatch, kNotElf, kNoDebugInfo };

  std::string path;
  Reason reason;
  std::string build_id;  // of the file, raw bytes
};

struct FoundFile {
  ScopedFd fd;
  std::string path;
};

class SymbolFinder {
 public:
  SymbolFinder(std::vector<std::string> roots, LookupMode mode, const DiskCache& cache)
      : roots_(std::move(roots)), mode_(mode), cache_(cache) {}

  bool has_roots() const { return !roots_.empty(); }

  // `path` as the mapping has it, `build_id` raw bytes and not empty. What was looked at
  // in vain is added to `rejected`.
  std::optional<FoundFile> Find(const std::string& path,
                                const std::string& build_id,
                                WantedSymbols wanted,
                                std::vector<RejectedFile>* rejected);

  // Reads the directories now if Find() will need them: before processes are forked that
  // would each have to.
  void PrepareIndex();

  // Null before it was needed.
  const BuildIdIndex* index() const { return index_.get(); }

 private:
  std::vector<std::string> roots_;
  LookupMode mode_;
  DiskCache cache_;
  std::unique_ptr<BuildIdIndex> index_;
};

// Opens `path` if it has the build id; else it is added to `rejected` if it exists.
std::optional<FoundFile> OpenIfMatching(const std::string& path,
                                        const std::string& build_id,
                                        WantedSymbols wanted,
                                        std::vector<RejectedFile>* rejected);

// The five places below `root`, without those that are the same. None for a path with "..".
std::vector<std::string> PlacesBelow(const std::string& root,
                                     const std::string& path,
                                     const std::string& build_id);

}  // namespace heapprofd
