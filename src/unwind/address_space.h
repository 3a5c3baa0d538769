// The mappings of one process, as far as they hold code or stacks, and the images behind
// them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files/guarded_read.h"
#include "base/status.h"
#include "profile/model.h"
#include "unwind/known_code.h"
#include "unwind/late_code.h"
#include "unwind/mapped_memory.h"
#include "unwind/module.h"
#include "unwind/opened_files.h"
#include "unwind/proc_maps.h"
#include "unwind/refresh_pause.h"
#include "unwind/vain_lookups.h"

namespace heapprofd {

struct CodeLocation {
  MappingId mapping = kNoId;
  Module* module = nullptr;  // nullptr: code without an image, e.g. from a JIT compiler
  uint64_t rel_pc = 0;
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

class AddressSpace {
 public:
  static constexpr uint64_t kFilesNs = 50'000'000;

  // New executable mappings are appended to `mappings`, which outlives this object.
  // `files_ns`: how long one refresh may open files; what is left comes with the next.
  AddressSpace(pid_t pid,
               ModuleCache* modules,
               std::vector<Mapping>* mappings,
               uint64_t files_ns = kFilesNs);

  // Reads the process's maps anew. An error when the process is gone; what is known then
  // stays. The file of code at `wanted` is opened however long others have taken.
  Result<RefreshOutcome> Refresh(uint64_t wanted = 0);

  std::optional<CodeLocation> Find(uint64_t pc) const;

  // As Find, but reads the maps anew when the address is unknown: a module may have been
  // loaded. Only as often as RefreshPause allows.
  std::optional<CodeLocation> FindOrRefresh(uint64_t pc);

  // True for where a return probe of the kernel (uretprobe) has functions return to: the
  // begin of its own code, which it puts on the stack in place of the caller.
  bool IsReturnProbe(uint64_t address) const;

  // What FindOrRefresh has not found. When code comes to lie where certainly none was,
  // replacements() grows.
  NotFound WhyNotFound(uint64_t pc);

  // Whether that was not too dear lately.
  bool MayRefresh() const { return pause_.IsOver(MonotonicNs()); }

  // Reads the maps anew if so; false: not read.
  bool RefreshIfCheap();

  // Whether the last refresh had no time for some files, whose code is unknown until the
  // next: what was taken for no code then grows replacements().
  bool has_unopened_files() const { return has_unopened_files_; }

  // Addresses for which the maps were not read although that might have helped: not
  // again so soon, or not in time.
  uint64_t postponed() const { return vain_.postponed(); }

  // Files that did not open in time when they were first looked at, by name. Until they
  // do, code of theirs is unknown.
  const std::vector<std::string>& late_files() const { return late_.files(); }

  // How many were gone, or could not be opened: nothing is known of their code.
  uint64_t gone_files() const { return gone_files_; }

  // The last refresh found that the program has ended: what was not looked at before
  // nobody will know.
  bool is_gone() const { return is_gone_; }

  uint64_t refreshes() const { return vain_.readings(); }

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
  const std::vector<AddressRange>& writable_regions() const { return mapped_.writable(); }

  // Of all code there has been, also of what is unmapped by now: images and files behind
  // the mappings (elements of the vector given at construction), and what is kept of it.
  const KnownCode& known() const { return known_; }

  // The process is gone: keeps what known() tells of mappings.
  void Release();

 private:
  // What one refresh has read so far.
  struct Reading;

  void LookAt(const MapEntry& entry, Reading* reading);
  std::optional<PlacedCode> Adopt(const MapEntry& entry, OpenedFiles* files);
  RefreshOutcome Accept(Reading reading);
  void NoteVain(uint64_t begin_ns);
  std::optional<CodeLocation> RefreshFor(uint64_t pc);

  pid_t pid_;
  ModuleCache* modules_;
  uint64_t files_ns_;
  MemoryFile maps_;
  KnownCode known_;
  std::vector<PlacedCode> code_;  // what is mapped, by address
  MappedMemory mapped_;
  VainLookups vain_;
  LateCode late_;
  uint64_t gone_files_ = 0;
  bool is_gone_ = false;
  uint64_t replacements_ = 0;
  uint64_t removals_ = 0;
  bool has_unopened_files_ = false;
  std::optional<bool> is_emulated_;  // nullopt: not known yet
  bool makes_code_ = false;  // and stacks lead through it, so it is not the client's
  RefreshPause pause_;
};

}  // namespace heapprofd
