// Which file below some directories has which build id: all of them, recursively.
//
// The list of a directory is kept in the disk cache; of files that have kept size, inode
// and time of change it is believed, so that the next run only needs to list them. What
// it leads to is checked again by whoever opens it.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbolize/disk_cache.h"

namespace heapprofd {

class BuildIdIndex {
 public:
  // Symbolic links are followed, each directory is read once.
  BuildIdIndex(const std::vector<std::string>& roots, const DiskCache& cache);

  // Files with this build id (raw bytes), those with debug information first.
  std::vector<std::string> Find(const std::string& build_id) const;

  uint64_t files() const { return files_; }

  // Of these, those that had to be opened: the others were in the cache.
  uint64_t opened_files() const { return opened_files_; }

  // More files or deeper folders than kMaxFiles and kMaxDepth: some were left out.
  bool is_truncated() const { return is_truncated_; }

 private:
  static constexpr uint64_t kMaxFiles = 1'000'000;
  static constexpr int kMaxDepth = 64;

  // A file as it was when it was read.
  struct Entry {
    uint64_t inode = 0;
    uint64_t size = 0;
    uint64_t changed_ns = 0;  // st_ctim
    bool has_debug_info = false;
    std::string build_id;  // empty: none, or no ELF file
  };

  using Entries = std::unordered_map<std::string, Entry>;  // by path

  void AddRoot(const std::string& root, const DiskCache& cache);
  Entry ReadEntry(const std::string& path,
                  const struct stat& status,
                  const Entries& known);
  static std::string Encode(const Entries& entries);
  static Entries Decode(std::string_view bytes);

  std::unordered_multimap<std::string, std::pair<std::string, bool>> by_build_id_;
  uint64_t files_ = 0;
  uint64_t opened_files_ = 0;
  bool is_truncated_ = false;
};

}  // namespace heapprofd
