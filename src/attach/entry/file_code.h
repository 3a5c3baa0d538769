// Code of a process as its files have it. The kernel's probes go by that, and may have
// changed what lies in memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/files/foreign_file.h"
#include "unwind/proc_maps.h"

namespace heapprofd {

class FileCode {
 public:
  // `maps`: outlives it. `view`: the thread under whose number /proc shows the process.
  FileCode(pid_t view, const std::vector<MapEntry>& maps) : view_(view), maps_(maps) {}

  // The executable mapping of a file at `address`; nullptr: there is none.
  const MapEntry* MappingAt(uint64_t address) const;

  // At most `size` bytes of the file whose code is mapped at `address`. Empty: it is in no
  // file, or that could not be opened.
  std::vector<uint8_t> Read(uint64_t address, size_t size);

  // Places of symbols and of the static probes of debuggers (USDT) that lie behind one of
  // `functions`, by less than `reach` bytes. All are addresses in the process, of one
  // module.
  std::vector<uint64_t> PlacesInside(std::span<const uint64_t> functions, uint64_t reach);

 private:
  const ForeignFile& FileOf(const MapEntry& entry);

  pid_t view_;
  const std::vector<MapEntry>& maps_;
  std::map<uint64_t, ForeignFile> files_;  // by begin of the mapping
};

}  // namespace heapprofd
