// The mappings of one process, as far as they hold code or stacks, and the images behind
// them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/files/guarded_read.h"
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

struct AddressRange {
  uint64_t start = 0;
  uint64_t end = 0;
};

enum class NotFound : uint8_t {
  kMayBeCode,  // compilers at run time hide theirs while they write
  kNoCode,     // nothing is mapped there, or no code, as far as is known
  kCertainlyNoCode,
};

struct RefreshOutcome {
  bool executable_removed =
      false;  // code vanished or was replaced: rules for it must be forgotten
  bool executable_added = false;
  // Opening files has taken too long: some code is not known yet.
  bool is_incomplete = false;
  // Nor is any: the maps were not to be read in time, and nothing has changed.
  bool is_late = false;
};

// When the maps may be read again for an address that is not known. What a target can
// make this cost is bounded to a tenth of our time: 64,000 mappings are legal, and so
// are addresses that lie in none.
class RefreshPause {
 public:
  bool IsOver(uint64_t now_ns) const { return now_ns >= until_ns_; }

  // A refresh has lasted from `begin_ns` to `end_ns`. `was_vain`: it did not help.
  void Note(uint64_t begin_ns, uint64_t end_ns, bool was_vain);

 private:
  uint64_t until_ns_ = 0;  // CLOCK_MONOTONIC
  int64_t credit_ns_ = 0;  // for refreshes that help
  uint64_t credited_ns_ = 0;
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
  // loaded. Only as often as RefreshPause allows.
  std::optional<CodeLocation> FindOrRefresh(uint64_t pc);

  // What FindOrRefresh has not found. When code comes to lie where certainly none was,
  // replacements() grows.
  NotFound WhyNotFound(uint64_t pc);

  // Whether that was not too dear lately.
  bool MayRefresh() const { return pause_.IsOver(MonotonicNs()); }

  // Reads the maps anew if so; false: not read.
  bool RefreshIfCheap();

  // Addresses for which the maps were not read although that might have helped: not
  // again so soon, or not in time.
  uint64_t postponed() const { return postponed_; }

  // Files that did not open in time when they were first looked at, by name. Until they
  // do, code of theirs is unknown.
  const std::vector<std::string>& late_files() const { return late_files_; }

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
  const std::vector<AddressRange>& writable_regions() const { return writable_; }

  // Whether there is code that no file holds, as compilers at run time make it.
  bool HasCodeWithoutFile() const { return has_code_without_file_; }

  // What is kept of the mappings in memory, about.
  uint64_t bytes() const { return bytes_; }

  // The process is gone: keeps what OpenFileOf and ModuleOf need.
  void Release();

  // The image of a mapping, also when it is unmapped by now; nullptr when there is none.
  Module* ModuleOf(MappingId mapping) const { return modules_of_[mapping].get(); }

  // The file behind one of the mappings (an element of the vector given at construction),
  // invalid when there is none.
  ScopedFd OpenFileOf(const Mapping& mapping) const;

 private:
  struct Code {
    MapEntry entry;
    MappingId mapping;
  };

  // Memory that is mapped without a gap.
  struct Mapped {
    uint64_t start;
    uint64_t end;
    bool executable;
  };

  // Files that this refresh has opened.
  struct OpenedFiles;

  std::optional<CodeLocation> RefreshFor(uint64_t pc);
  bool WasCode(uint64_t pc) const;
  void LookForEmulator(std::string_view maps, OpenedFiles* files);
  static void AddMapped(const MapEntry& entry, std::vector<Mapped>* mapped);
  void LookAt(MapEntry& entry, OpenedFiles* files, RefreshOutcome* outcome);
  void NoteLate(const MapEntry& entry);
  std::optional<Code> Adopt(const MapEntry& entry, OpenedFiles* files);
  uint64_t LoadBiasOf(const MapEntry& entry, const Module& module) const;
  void ClearPlace(const MapEntry& entry);

  pid_t pid_;
  ModuleCache* modules_;
  std::vector<Mapping>* mappings_;
  MemoryFile maps_;
  std::vector<Code> code_;       // by address
  std::vector<Code> next_code_;  // the same, while the maps are read
  size_t old_ = 0;               // the first of code_ that may still be found there
  size_t kept_ = 0;              // of code_
  std::vector<AddressRange> writable_;
  std::vector<Mapped> mapped_;          // by address
  std::map<uint64_t, uint64_t> asked_;  // by address that is not known: refreshes_ then
  std::set<uint64_t> no_code_;          // where certainly none was
  std::set<uint64_t> late_;             // begin of code whose file did not open in time
  std::vector<std::shared_ptr<Module>> modules_of_;  // by MappingId
  // The latest code at each place, still mapped or not. By start, disjoint.
  std::map<uint64_t, Code> places_;
  uint64_t replacements_ = 0;
  uint64_t removals_ = 0;
  uint64_t refreshes_ = 0;
  uint64_t postponed_ = 0;
  std::vector<std::string> late_files_;
  uint64_t bytes_ = 0;
  bool has_code_without_file_ = false;
  bool knows_emulator_ = false;  // is_emulated_ says what is so
  bool is_emulated_ = false;
  bool makes_code_ = false;  // and stacks lead through it, so it is not the client's
  RefreshPause pause_;
};

}  // namespace heapprofd
