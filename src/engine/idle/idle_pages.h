// Which pages of a process nobody touches: the kernel's idle page tracking
// (Documentation/admin-guide/mm/idle_page_tracking.rst). A page that is marked stays so
// until somebody reads or writes it.
//
// Only anonymous pages that are the process's own when they are asked about are marked:
// nothing is learnt of what others do with theirs. A huge page is one.
//
// Whoever runs a process can make the kernel wait or take long over its pages (mappings
// that are held, pages that thousands of children have): those of other users are looked
// at by a thread that can be left behind (base/files/guarded_read.h).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/files/guarded_read.h"
#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

// Where the kernel has its files; in tests elsewhere.
struct IdlePagePlaces {
  std::string page_flags = "/proc/kpageflags";
  std::string bitmap = "/sys/kernel/mm/page_idle/bitmap";
  std::string lru_gen = "/sys/kernel/mm/lru_gen/enabled";
};

// Of all pages of the machine.
struct MachinePageFiles {
  ScopedFd page_flags;  // /proc/kpageflags: which of them are one huge page
  ScopedFd bitmap;      // /sys/kernel/mm/page_idle/bitmap, to read
  ScopedFd marks;       // the same, to write: bits that are 1 are set
};

class IdlePages {
 public:
  struct Files {
    ScopedFd pagemap;  // /proc/PID/pagemap: where its pages are
    std::shared_ptr<const MachinePageFiles> machine;
  };

  // A status says why this kernel or these rights do not allow it. All processes that are
  // looked at have the same files of the machine. One thread: the sessions'.
  static Result<Files> Open(pid_t pid, const IdlePagePlaces& places = {});

  // Why what is told may be too much with this kernel; "": nothing is known.
  static std::string Caveat(const IdlePagePlaces& places = {});

  IdlePages(pid_t pid, Files files)
      : pid_(pid), files_(std::make_shared<const Files>(std::move(files))) {}

  // There are millions.
  struct Page {
    uint64_t frame : 63 = 0;  // physical, the first of a huge page; 0: not asked about
    uint64_t is_idle : 1 = 0;
  };

  // How many are asked about or marked together at most.
  static constexpr size_t kTogether = 512;

  enum class State : uint8_t {
    kSeen,
    kLate,  // the kernel has not answered in time, and is not asked for a while
    kGone,  // the process has ended, or is another program now
  };

  struct Looked {
    State state = State::kSeen;
    size_t count = 0;  // of the first pages; fewer than all when they took milliseconds
    uint64_t cpu_ns = 0;
  };

  // Fills the begin of `found` for as many pages (at most kTogether), by number (address /
  // page size), ascending.
  Looked Look(std::span<const uint64_t> pages, std::span<Page> found) const;

  // Marks these frames (as many); kSeen: all of them.
  Looked Mark(std::span<const uint64_t> frames) const;

 private:
  GuardedText Ask(const std::function<std::string()>& work, Looked* looked) const;

  pid_t pid_;
  std::shared_ptr<const Files> files_;  // a thread that was left behind has them, too
};

}  // namespace heapprofd
