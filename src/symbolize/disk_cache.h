// Files that save work when the same program is looked at again: below
// $XDG_CACHE_HOME/heapprofd (~/.cache/heapprofd).
//
// A cache never matters for an answer: what cannot be read, is damaged or belongs to
// somebody else is as if it were not there, and what cannot be written is not written.
// Files appear whole or not at all; the ones used longest ago go when there are too many.
//
// A file is "HPDCACHE", u64 checksum of what follows, u32 version, contents.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/scoped_fd.h"

namespace heapprofd {

class DiskCache {
 public:
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 30;        // of all files
  static constexpr uint64_t kMaxFileBytes = uint64_t{128} << 20;  // of one

  // `directory` empty: no cache; nothing is found and nothing kept.
  explicit DiskCache(std::string directory, uint64_t max_bytes = kMaxBytes)
      : directory_(std::move(directory)), max_bytes_(max_bytes) {}

  // The user's directory; empty when neither XDG_CACHE_HOME nor HOME names one.
  static std::string StandardDirectory();

  // `name` is a file name. Nothing unless the contents are those that Store() was given.
  std::optional<std::string> Load(const std::string& name) const;

  void Store(const std::string& name, std::string_view contents) const;

  // For whoever adds to what is stored: Load() and Store() while this lives are not mixed
  // with those of other processes that hold it. Invalid without a directory.
  ScopedFd Lock() const;

 private:
  // `place`: of the directory.
  void RemoveOldest(const std::string& place) const;

  std::string directory_;
  uint64_t max_bytes_;
};

// The contents in the bytes of a cache file; nothing when they are damaged or of another
// version. A view into `bytes`.
std::optional<std::string_view> UnsealCacheFile(std::string_view bytes);

}  // namespace heapprofd
