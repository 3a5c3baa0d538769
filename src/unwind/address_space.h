// The mappings of one process, as far as they hold code or stacks, and the images behind
// them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/scoped_fd.h"
#include "base/status.h"
#include "profile/model.h"
#include "unwind/module.h"
#include "unwind/proc_maps.h"

namespace heapprofd {

struct CodeLocation {
  MappingId mapping = kNoId;
  Module* module = nullptr;  // nullptr: code without an image, e.g. from a JIT compiler
  uint64_t rel_pc = 0;
};

struct RefreshOutcome {
  bool executable_removed =
      false;  // code vanished or was replaced: rules for it must be forgotten
  bool executable_added = false;
};

class AddressSpace {
 public:
  // New executable mappings are appended to `mappings`, which outlives this object.
  AddressSpace(pid_t pid, ModuleCache* modules, std::vector<Mapping>* mappings);

  // Reads the process's maps anew. An error when the process is gone; what is known then
  // stays.
  Result<RefreshOutcome> Refresh();

  std::optional<CodeLocation> Find(uint64_t pc) const;

  // As Find, but reads the maps anew when the address is unknown: a module may have been
  // loaded. Not more often than every few milliseconds as long as that does not help.
  std::optional<CodeLocation> FindOrRefresh(uint64_t pc);

  uint64_t refreshes() const { return refreshes_; }

  // Grows when code has come to lie where other code was, seen by any Refresh. Whoever
  // keeps what it derived from code compares this with the number it saw last: the
  // refresh that noticed may have been another's. Code that only vanished does not count,
  // since no stack leads through it any more (a JIT compiler hides its code while it
  // writes).
  uint64_t replacements() const { return replacements_; }

  // How often a refresh found code gone from its place. What lies there next is known
  // only when somebody looks again.
  uint64_t removals() const { return removals_; }

  // Readable and writable mappings in order of address: where stacks can be.
  const std::vector<MapEntry>& writable_regions() const { return writable_; }

  // The image of a mapping, also when it is unmapped by now; nullptr when there is none.
  Module* ModuleOf(MappingId mapping) const { return modules_of_[mapping].get(); }

  // Descriptor of the file behind one of the mappings (an element of the vector given at
  // construction), -1 when there is none. Stays ours.
  int FileOf(const Mapping& mapping) const;

 private:
  struct Code {
    MapEntry entry;
    MappingId mapping;
  };

  std::optional<Code> Adopt(const MapEntry& entry);
  void ClearPlace(const MapEntry& entry);

  pid_t pid_;
  ModuleCache* modules_;
  std::vector<Mapping>* mappings_;
  ScopedFd maps_;  // stays with this image of the process: it reads empty after an exec
  std::vector<Code> code_;  // by address
  std::vector<MapEntry> writable_;
  std::vector<std::shared_ptr<Module>> modules_of_;  // by MappingId
  // The latest code at each place, still mapped or not. By start, disjoint.
  std::map<uint64_t, Code> places_;
  uint64_t replacements_ = 0;
  uint64_t removals_ = 0;
  uint64_t refreshes_ = 0;
  uint64_t vain_refresh_ns_ = 0;  // CLOCK_MONOTONIC
};

}  // namespace heapprofd
