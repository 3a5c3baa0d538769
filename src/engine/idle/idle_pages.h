// Which pages of a process nobody touches: the kernel's idle page tracking
// (Documentation/admin-guide/mm/idle_page_tracking.rst). A page that is marked stays so
// until somebody reads or writes it.
//
// Only anonymous pages that this process alone has mapped are asked about and marked:
// nothing is learnt of what others do with theirs. A huge page is one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

// Where the kernel has its files; in tests elsewhere.
struct IdlePagePlaces {
  std::string page_flags = "/proc/kpageflags";
  std::string bitmap = "/sys/kernel/mm/page_idle/bitmap";
};

class IdlePages {
 public:
  struct Files {
    ScopedFd pagemap;     // /proc/PID/pagemap: where its pages are
    ScopedFd page_flags;  // /proc/kpageflags: which of them are one huge page
    ScopedFd bitmap;      // /sys/kernel/mm/page_idle/bitmap, to read
    ScopedFd marks;       // the same, to write: bits that are 1 are set
  };

  // A status says why this kernel or these rights do not allow it.
  static Result<Files> Open(pid_t pid, const IdlePagePlaces& places = {});

  explicit IdlePages(Files files) : files_(std::move(files)) {}

  // There are millions.
  struct Page {
    uint64_t frame : 63 = 0;  // physical, the first of a huge page; 0: not asked about
    uint64_t is_idle : 1 = 0;
  };

  // How many are asked about or marked together: some milliseconds at most.
  static constexpr size_t kTogether = 512;

  // Fills `found` for as many pages, by number (address / page size), ascending.
  void Look(std::span<const uint64_t> pages, std::span<Page> found) const;

  // Marks these frames. False: not all of them.
  bool Mark(std::span<const uint64_t> frames) const;

 private:
  void FindFrames(std::span<const uint64_t> pages, std::span<Page> found) const;
  void FindHeads(std::span<Page> found) const;
  uint64_t HeadOf(uint64_t frame) const;
  uint64_t FlagsOf(uint64_t frame) const;

  Files files_;
};

}  // namespace heapprofd
