// Files as the kernel shows pages in, in memory, for tests.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <memory>

#include "base/scoped_fd.h"
#include "engine/idle/idle_pages.h"

namespace heapprofd {

class FakePageFiles {
 public:
  static constexpr uint64_t kPresent = uint64_t{1} << 63;
  static constexpr uint64_t kFileOrShared = uint64_t{1} << 61;
  static constexpr uint64_t kExclusive = uint64_t{1} << 56;
  static constexpr uint64_t kLru = uint64_t{1} << 5;
  static constexpr uint64_t kHead = uint64_t{1} << 15 | kLru;
  static constexpr uint64_t kTail = uint64_t{1} << 16;
  static constexpr uint64_t kHugetlb = uint64_t{1} << 17;

  // A page of the process's own, at this frame.
  void Map(uint64_t page, uint64_t frame, uint64_t flags = kLru) {
    MapEntry(page, frame | kPresent | kExclusive);
    Write(flags_, frame, flags);
  }

  void MapEntry(uint64_t page, uint64_t entry) { Write(pagemap_, page, entry); }

  void SetIdle(uint64_t frame, bool is_idle) {
    const uint64_t bit = uint64_t{1} << (frame % 64);
    const uint64_t word = Read(bitmap_, frame / 64);
    Write(bitmap_, frame / 64, is_idle ? word | bit : word & ~bit);
  }

  // What was written becomes idle, as the kernel would have made it at once.
  void TakeMarks() {
    for (uint64_t at = 0; at < kFrames / 64; ++at) {
      Write(bitmap_, at, Read(bitmap_, at) | Read(marks_, at));
      Write(marks_, at, 0);
    }
  }

  bool IsIdle(uint64_t frame) const {
    return (Read(bitmap_, frame / 64) >> (frame % 64) & 1) != 0;
  }

  // That read and write these files, which are larger than any frame of a test.
  IdlePages Pages() const {
    return {getpid(),
            {.pagemap = ScopedFd(dup(pagemap_.get())),
             .machine = std::make_shared<const MachinePageFiles>(
                 MachinePageFiles{.page_flags = ScopedFd(dup(flags_.get())),
                                  .bitmap = ScopedFd(dup(bitmap_.get())),
                                  .marks = ScopedFd(dup(marks_.get()))})}};
  }

  // As where the machine's memory ends with this frame: of the word that has it the
  // kernel tells nothing.
  void EndBitmapWith(uint64_t frame) {
    static_cast<void>(
        ftruncate(bitmap_.get(), static_cast<off_t>(frame / 64 * sizeof(uint64_t))));
  }

  // As of a process that has ended.
  void End() { static_cast<void>(ftruncate(pagemap_.get(), 0)); }

 private:
  static constexpr off_t kSize = off_t{1} << 20;
  static constexpr uint64_t kFrames = 4096;  // that tests use

  static ScopedFd Make() {
    ScopedFd fd(memfd_create("pages", MFD_CLOEXEC));
    static_cast<void>(ftruncate(fd.get(), kSize));
    return fd;
  }

  static void Write(const ScopedFd& fd, uint64_t at, uint64_t value) {
    static_cast<void>(
        !pwrite(fd.get(), &value, sizeof(value), static_cast<off_t>(at * sizeof(value))));
  }

  static uint64_t Read(const ScopedFd& fd, uint64_t at) {
    uint64_t value = 0;
    static_cast<void>(
        !pread(fd.get(), &value, sizeof(value), static_cast<off_t>(at * sizeof(value))));
    return value;
  }

  ScopedFd pagemap_ = Make();
  ScopedFd flags_ = Make();
  ScopedFd bitmap_ = Make();
  ScopedFd marks_ = Make();
};

}  // namespace heapprofd
