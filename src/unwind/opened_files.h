// The files that one reading of a process's maps has opened: a target can map one file
// many thousand times, and as many files.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "unwind/module.h"
#include "unwind/proc_maps.h"

namespace heapprofd {

class OpenedFiles {
 public:
  OpenedFiles(pid_t pid, ModuleCache* cache) : pid_(pid), cache_(cache) {}

  // nullptr: there is no image, or it is_late().
  std::shared_ptr<Module> ModuleOf(const MapEntry& entry);

  // By its file, whatever the kernel says of the memory.
  bool IsCode(const MapEntry& entry);

  // Whether its code is had without opening anything.
  bool Has(const MapEntry& entry) const {
    return entry.inode == 0 || modules_.contains({entry.device, entry.inode});
  }

  // The last one: it may be had later.
  bool is_late() const { return state_ == ModuleCache::FileState::kLate; }

  // The same: it is not to be had.
  bool is_gone() const { return state_ == ModuleCache::FileState::kGone; }

  // In opening.
  uint64_t spent_ns() const { return spent_ns_; }

 private:
  pid_t pid_;
  ModuleCache* cache_;
  uint64_t spent_ns_ = 0;
  ModuleCache::FileState state_ = ModuleCache::FileState::kFound;
  std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<Module>>
      modules_;  // by device and inode as the maps have them
};

}  // namespace heapprofd
