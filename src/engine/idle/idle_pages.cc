#include "engine/idle/idle_pages.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attach/remote_process.h"
#include "base/clock.h"
#include "base/files/proc_files.h"
#include "base/page_size.h"

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
constexpr uint64_t kLru = uint64_t{1} << 5;       // others cannot be marked
constexpr uint64_t kHugetlb = uint64_t{1} << 17;  // nor can these
constexpr int kHugeOrder =
    13;  // of the largest of anonymous memory, with pages of 64 KiB

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
                  "cannot track idle memory: there is no " + path +
                      "; use a kernel with CONFIG_IDLE_PAGE_TRACKING that shows /sys");
  return OpenFile(path, mode);
}

// The kernel tells where pages are with CAP_SYS_ADMIN only, and else 0; looked at with a
// page of our own, which is there.
bool TellsFrames() {
  const ScopedFd own(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  const volatile char here = 1;
  const auto page = reinterpret_cast<uintptr_t>(&here) / PageSize();
  uint64_t entry = 0;
  const bool is_read = pread(own.get(), &entry, sizeof(entry),
                             static_cast<off_t>(page * sizeof(entry))) == sizeof(entry);
  return !is_read || (entry & kPresent) == 0 || (entry & kFrameMask) != 0;
}

using SharedMachineFiles = std::shared_ptr<const MachinePageFiles>;

// Those that others have, as long as somebody has them.
Result<SharedMachineFiles> OpenMachineFiles(const IdlePagePlaces& places) {
  static std::map<std::string, std::weak_ptr<const MachinePageFiles>> known;  // by bitmap
  if (SharedMachineFiles files = known[places.bitmap].lock())
    return files;
  const auto files = std::make_shared<MachinePageFiles>();
  HPD_TRY_ASSIGN(files->bitmap, OpenBitmap(places.bitmap, O_RDONLY));
  HPD_TRY_ASSIGN(files->marks, OpenBitmap(places.bitmap, O_WRONLY));
  HPD_TRY_ASSIGN(files->page_flags, OpenFile(places.page_flags, O_RDONLY));
  if (!TellsFrames())
    return Status(StatusCode::kUnavailable,
                  "cannot track idle memory: the kernel does not tell where pages are "
                  "without CAP_SYS_ADMIN; record as root, outside of containers");
  known[places.bitmap] = files;
  return SharedMachineFiles(files);
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

bool CanBeMarked(uint64_t flags) {
  return (flags & kLru) != 0 && (flags & kHugetlb) == 0;
}

// What one batch of pages is looked at with.
class PageBatch {
 public:
  PageBatch(const IdlePages::Files& files, std::span<const uint64_t> pages)
      : files_(files), pages_(pages), found_(pages.size()) {}

  // As many of the first ones as a turn allows, in parts; empty: the process is gone.
  std::span<const IdlePages::Page> Look() {
    constexpr size_t kPart = 64;  // each may be of another word of the bitmap
    constexpr uint64_t kTurnNs = 5'000'000;
    uint64_t none = 0;
    if (ReadEntries(files_.pagemap.get(), 0, 1, &none) != 1)
      return {};
    const uint64_t end_ns = MonotonicNs() + kTurnNs;
    size_t at = 0;
    while (at < pages_.size() && (at == 0 || MonotonicNs() < end_ns)) {
      const size_t count = std::min(kPart, pages_.size() - at);
      const std::span<IdlePages::Page> found = std::span(found_).subspan(at, count);
      FindFrames(pages_.subspan(at, count), found);
      FindHeads(found);
      ReadMarks(found);
      at += count;
    }
    return std::span(found_).first(at);
  }

 private:
  void FindFrames(std::span<const uint64_t> pages,
                  std::span<IdlePages::Page> found) const;
  void FindHeads(std::span<IdlePages::Page> found) const;
  void ReadMarks(std::span<IdlePages::Page> found) const;
  uint64_t HeadOf(uint64_t frame) const;
  uint64_t FlagsOf(uint64_t frame) const;

  const IdlePages::Files& files_;
  std::span<const uint64_t> pages_;
  std::vector<IdlePages::Page> found_;
};

void PageBatch::FindFrames(std::span<const uint64_t> pages,
                           std::span<IdlePages::Page> found) const {
  std::array<uint64_t, IdlePages::kTogether> entries{};
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

// The mark of a huge page is at its first frame. 0: it cannot be marked.
void PageBatch::FindHeads(std::span<IdlePages::Page> found) const {
  std::array<uint64_t, IdlePages::kTogether> flags{};
  for (size_t at = 0; at < found.size();) {
    if (found[at].frame == 0) {
      ++at;
      continue;
    }
    const size_t run =
        RunLength(at, found.size(), [&](size_t i) { return uint64_t{found[i].frame}; });
    const size_t count =
        ReadEntries(files_.machine->page_flags.get(), found[at].frame, run, flags.data());
    std::optional<uint64_t> head;  // of the page before
    for (size_t i = 0; i < run; ++i) {
      IdlePages::Page& page = found[at + i];
      const bool is_tail = i < count && (flags[i] & kCompoundTail) != 0;
      if (!is_tail)
        head = i < count && CanBeMarked(flags[i]) ? page.frame : 0;
      else if (!head)
        head = HeadOf(page.frame);
      page.frame = *head & kFrameMask;
    }
    at += run;
  }
}

// Huge pages of all sizes lie at multiples of their sizes. 0: there is none, it has been
// broken up meanwhile.
uint64_t PageBatch::HeadOf(uint64_t frame) const {
  for (int order = 1; order <= kHugeOrder; ++order) {
    const uint64_t head = frame >> order << order;
    if (const uint64_t flags = FlagsOf(head); (flags & kCompoundHead) != 0)
      return CanBeMarked(flags) ? head : 0;
  }
  return 0;
}

uint64_t PageBatch::FlagsOf(uint64_t frame) const {
  uint64_t flags = 0;
  return ReadEntries(files_.machine->page_flags.get(), frame, 1, &flags) == 1 ? flags : 0;
}

// The kernel tells words, but not the last one where memory ends within it.
void PageBatch::ReadMarks(std::span<IdlePages::Page> found) const {
  std::array<uint16_t, IdlePages::kTogether> order{};
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
    IdlePages::Page& page = found[order[i]];
    if (const uint64_t at = page.frame / kWordBits; at != word_at) {
      word_at = at;
      is_read = ReadEntries(files_.machine->bitmap.get(), at, 1, &word) == 1;
    }
    page.is_idle = is_read && (word >> (page.frame % kWordBits) & 1) != 0 ? 1 : 0;
    if (!is_read)
      page.frame = 0;
  }
}

bool MarkFrames(const IdlePages::Files& files, std::vector<uint64_t> frames) {
  std::ranges::sort(frames);
  for (size_t at = 0; at < frames.size();) {
    const uint64_t word_at = frames[at] / kWordBits;
    uint64_t word = 0;
    for (; at < frames.size() && frames[at] / kWordBits == word_at; ++at)
      word |= uint64_t{1} << (frames[at] % kWordBits);
    if (pwrite(files.machine->marks.get(), &word, sizeof(word),
               static_cast<off_t>(word_at * sizeof(word))) != sizeof(word))
      return false;
  }
  return true;
}

// By a thread that can be left behind, as the kernel may be made to wait. Of a process
// whose first thread has ended another one shows the pages.
Result<ScopedFd> OpenPagemap(pid_t pid) {
  struct Opened {
    ScopedFd fd;
    Status status;
  };

  const auto opened = std::make_shared<Opened>();
  const GuardedText text = AskAbout(pid, [opened, pid] {
    Result<ScopedFd> file = OpenFile(ProcPath(LiveThread(pid), "pagemap"), O_RDONLY);
    opened->status = file.status();
    if (file.ok())
      opened->fd = std::move(file).value();
    return std::string();
  });
  const std::string path = ProcPath(pid, "pagemap");
  if (text.is_late)
    return Status(StatusCode::kUnavailable,
                  "cannot track idle memory: the kernel has not opened " + path +
                      " in time; see whether the program hangs");
  if (text.error != 0)
    return Status::FromErrno("cannot track idle memory: cannot open " + path, text.error);
  HPD_TRY(opened->status);
  return std::move(opened->fd);
}

}  // namespace

Result<IdlePages::Files> IdlePages::Open(pid_t pid, const IdlePagePlaces& places) {
  Files files;
  HPD_TRY_ASSIGN(files.machine, OpenMachineFiles(places));
  HPD_TRY_ASSIGN(files.pagemap, OpenPagemap(pid));
  return files;
}

std::string IdlePages::Caveat(const IdlePagePlaces& places) {
  std::ifstream file(places.lru_gen);
  std::string enabled;
  if (!(file >> enabled) || enabled.find_first_not_of("0x") == std::string::npos)
    return "";
  return "idle memory may be told too large: this kernel's multi-generational LRU also "
         "looks for what is touched, and hides it; write 0 to " +
         places.lru_gen + " before";
}

// What `work` gives, and on whichever thread it was done, what that took.
GuardedText IdlePages::Ask(const std::function<std::string()>& work,
                           Looked* looked) const {
  const auto cpu_ns = std::make_shared<std::atomic<uint64_t>>(0);
  GuardedText text = AskAbout(pid_, [work, cpu_ns] {
    const uint64_t begin_ns = ThreadCpuNs();
    std::string answer = work();
    *cpu_ns = ThreadCpuNs() - begin_ns;
    return answer;
  });
  looked->cpu_ns = *cpu_ns;
  if (text.is_late || (text.error != 0 && text.error != ESRCH))
    looked->state = State::kLate;
  else if (text.text.empty())
    looked->state = State::kGone;
  return text;
}

IdlePages::Looked IdlePages::Look(std::span<const uint64_t> pages,
                                  std::span<Page> found) const {
  HPD_CHECK(pages.size() <= kTogether && found.size() == pages.size());
  const auto look = [files = files_,
                     asked = std::vector<uint64_t>(pages.begin(), pages.end())] {
    PageBatch batch(*files, asked);
    const std::span<const Page> seen = batch.Look();
    return std::string(reinterpret_cast<const char*>(seen.data()), seen.size_bytes());
  };
  Looked looked;
  const GuardedText text = Ask(look, &looked);
  if (looked.state == State::kSeen) {
    memcpy(found.data(), text.text.data(), text.text.size());
    looked.count = text.text.size() / sizeof(Page);
  }
  return looked;
}

IdlePages::Looked IdlePages::Mark(std::span<const uint64_t> frames) const {
  HPD_CHECK(frames.size() <= kTogether);
  Looked looked{.count = frames.size()};
  if (frames.empty())
    return looked;
  const auto mark = [files = files_,
                     given = std::vector<uint64_t>(frames.begin(), frames.end())] {
    return std::string(MarkFrames(*files, given) ? "all" : "");
  };
  static_cast<void>(Ask(mark, &looked));
  return looked;
}

}  // namespace heapprofd
