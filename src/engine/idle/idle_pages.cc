#include "engine/idle/idle_pages.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace heapprofd {
namespace {

// Of an entry of pagemap.
constexpr uint64_t kPresent = uint64_t{1} << 63;
constexpr uint64_t kFileOrShared = uint64_t{1} << 61;
constexpr uint64_t kExclusive = uint64_t{1} << 56;
constexpr uint64_t kFrameMask = (uint64_t{1} << 55) - 1;

// Of an entry of kpageflags.
constexpr uint64_t kCompoundHead = uint64_t{1} << 15;
constexpr uint64_t kCompoundTail = uint64_t{1} << 16;
constexpr int kHugeOrder = 9;  // 2 MiB, the largest of anonymous memory

constexpr size_t kWordBits = 64;

Status NoRight(const std::string& path, int error) {
  return {StatusCode::kUnavailable, "cannot track idle memory: no right to use " + path +
                                        " (" + strerror(error) +
                                        "); record as root, outside of containers"};
}

Result<ScopedFd> OpenFile(const std::string& path, int mode) {
  ScopedFd fd(open(path.c_str(), mode | O_CLOEXEC));
  if (fd.valid())
    return fd;
  if (errno == EACCES || errno == EPERM || errno == EROFS)
    return NoRight(path, errno);
  return Status::FromErrno("cannot track idle memory: cannot open " + path, errno);
}

Result<ScopedFd> OpenBitmap(const std::string& path, int mode) {
  if (access(path.c_str(), F_OK) != 0 && errno == ENOENT)
    return Status(StatusCode::kUnavailable,
                  "cannot track idle memory: this kernel does not track idle pages "
                  "(there is no " +
                      path + "); use one with CONFIG_IDLE_PAGE_TRACKING");
  return OpenFile(path, mode);
}

// The kernel tells where pages are with CAP_SYS_ADMIN only, and else 0; looked at with a
// page of our own, which is there.
bool TellsFrames() {
  const ScopedFd own(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  const volatile char here = 1;
  const auto page =
      reinterpret_cast<uintptr_t>(&here) / static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  uint64_t entry = 0;
  const bool is_read = pread(own.get(), &entry, sizeof(entry),
                             static_cast<off_t>(page * sizeof(entry))) == sizeof(entry);
  return !is_read || (entry & kPresent) == 0 || (entry & kFrameMask) != 0;
}

// `count` entries from `first` on; fewer where the file has no more.
size_t ReadEntries(int fd, uint64_t first, size_t count, uint64_t* entries) {
  const ssize_t size = pread(fd, entries, count * sizeof(*entries),
                             static_cast<off_t>(first * sizeof(*entries)));
  return size > 0 ? static_cast<size_t>(size) / sizeof(*entries) : 0;
}

// How many numbers follow each other without a gap, from `at` on.
template <typename NumberAt>
size_t RunLength(size_t at, size_t size, NumberAt number_at) {
  size_t length = 1;
  while (at + length < size && number_at(at + length) == number_at(at) + length)
    ++length;
  return length;
}

}  // namespace

Result<IdlePages::Files> IdlePages::Open(pid_t pid, const IdlePagePlaces& places) {
  Files files;
  HPD_TRY_ASSIGN(files.bitmap, OpenBitmap(places.bitmap, O_RDONLY));
  HPD_TRY_ASSIGN(files.marks, OpenBitmap(places.bitmap, O_WRONLY));
  HPD_TRY_ASSIGN(files.page_flags, OpenFile(places.page_flags, O_RDONLY));
  HPD_TRY_ASSIGN(files.pagemap,
                 OpenFile("/proc/" + std::to_string(pid) + "/pagemap", O_RDONLY));
  if (!TellsFrames())
    return Status(StatusCode::kUnavailable,
                  "cannot track idle memory: the kernel does not tell where pages are "
                  "without CAP_SYS_ADMIN; record as root, outside of containers");
  return files;
}

void IdlePages::Look(std::span<const uint64_t> pages, std::span<Page> found) const {
  FindFrames(pages, found);
  FindHeads(found);
  std::array<uint16_t, kTogether> order{};
  size_t count = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i].frame != 0)
      order[count++] = static_cast<uint16_t>(i);
  }
  std::sort(order.begin(), order.begin() + count,
            [&found](uint16_t a, uint16_t b) { return found[a].frame < found[b].frame; });
  uint64_t word_at = ~uint64_t{0};
  uint64_t word = 0;
  bool is_read = false;
  for (size_t i = 0; i < count; ++i) {
    Page& page = found[order[i]];
    if (const uint64_t at = page.frame / kWordBits; at != word_at) {
      word_at = at;
      is_read = ReadEntries(files_.bitmap.get(), at, 1, &word) == 1;
    }
    page.is_idle = is_read ? word >> (page.frame % kWordBits) & 1 : 0;
    if (!is_read)
      page.frame = 0;
  }
}

void IdlePages::FindFrames(std::span<const uint64_t> pages, std::span<Page> found) const {
  std::array<uint64_t, kTogether> entries{};
  for (size_t at = 0; at < pages.size();) {
    const size_t run = RunLength(at, pages.size(), [&](size_t i) { return pages[i]; });
    const size_t count =
        ReadEntries(files_.pagemap.get(), pages[at], run, entries.data());
    for (size_t i = 0; i < run; ++i) {
      const bool is_own =
          i < count && (entries[i] & (kPresent | kFileOrShared | kExclusive)) ==
                           (kPresent | kExclusive);
      found[at + i] = {.frame = is_own ? entries[i] & kFrameMask : 0, .is_idle = 0};
    }
    at += run;
  }
}

// The mark of a huge page is at its first frame.
void IdlePages::FindHeads(std::span<Page> found) const {
  std::array<uint64_t, kTogether> flags{};
  for (size_t at = 0; at < found.size();) {
    if (found[at].frame == 0) {
      ++at;
      continue;
    }
    const size_t run =
        RunLength(at, found.size(), [&](size_t i) { return uint64_t{found[i].frame}; });
    const size_t count =
        ReadEntries(files_.page_flags.get(), found[at].frame, run, flags.data());
    uint64_t head = 0;  // of the page before
    for (size_t i = 0; i < run; ++i) {
      Page& page = found[at + i];
      const bool is_tail = i < count && (flags[i] & kCompoundTail) != 0;
      if (!is_tail)
        head = i < count ? page.frame : 0;
      else if (head == 0)
        head = HeadOf(page.frame);
      page.frame = head & kFrameMask;
    }
    at += run;
  }
}

// Huge pages of all sizes lie at multiples of their sizes. 0: there is none, it has been
// broken up meanwhile.
uint64_t IdlePages::HeadOf(uint64_t frame) const {
  for (int order = 1; order <= kHugeOrder; ++order) {
    const uint64_t head = frame >> order << order;
    if ((FlagsOf(head) & kCompoundHead) != 0)
      return head;
  }
  return 0;
}

uint64_t IdlePages::FlagsOf(uint64_t frame) const {
  uint64_t flags = 0;
  return ReadEntries(files_.page_flags.get(), frame, 1, &flags) == 1 ? flags : 0;
}

bool IdlePages::Mark(std::span<const uint64_t> frames) const {
  std::vector<uint64_t> sorted(frames.begin(), frames.end());
  std::ranges::sort(sorted);
  for (size_t at = 0; at < sorted.size();) {
    const uint64_t word_at = sorted[at] / kWordBits;
    uint64_t word = 0;
    for (; at < sorted.size() && sorted[at] / kWordBits == word_at; ++at)
      word |= uint64_t{1} << (sorted[at] % kWordBits);
    if (pwrite(files_.marks.get(), &word, sizeof(word),
               static_cast<off_t>(word_at * sizeof(word))) != sizeof(word))
      return false;
  }
  return true;
}

}  // namespace heapprofd
