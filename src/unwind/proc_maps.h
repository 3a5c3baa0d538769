// Reader of /proc/PID/maps.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace heapprofd {

struct MapEntry {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t offset = 0;
  bool readable = false;
  bool writable = false;
  bool executable = false;
  bool is_deleted = false;  // the file has no name any more; stripped from `path`
  uint64_t device = 0;      // major << 20 | minor
  uint64_t inode = 0;
  std::string path;  // "[vdso]", "" when anonymous

  bool operator==(const MapEntry&) const = default;
};

// So much of the text is read: the longest that a process can make of 65,530 mappings
// without files, twice over.
inline constexpr size_t kMaxMapsText = size_t{16} << 20;

enum class MapDetail : uint8_t {
  kOfCode,  // of entries that are not executable the addresses and permissions alone
  kOfAll,
};

// Gives every entry of a whole line to `each`, which may take its contents.
void ForEachMapping(std::string_view text,
                    MapDetail detail,
                    const std::function<void(MapEntry&)>& each);

// Lines that are not of the kernel's form are skipped. At most `kMaxMapEntries` are
// returned.
std::vector<MapEntry> ParseMaps(std::string_view text);

inline constexpr size_t kMaxMapEntries = 200'000;

}  // namespace heapprofd
