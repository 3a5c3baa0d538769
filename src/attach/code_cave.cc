#include "attach/code_cave.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <optional>

#include "base/text.h"
#include "unwind/elf_functions.h"
#include "unwind/module.h"

extern "C" const uint8_t hpd_stub[];
extern "C" const uint8_t hpd_stub_parameters[];
extern "C" const uint8_t hpd_stub_end[];

namespace heapprofd {
namespace {

constexpr uint64_t kAlignment = 16;
constexpr size_t kMaxVdso = size_t{64} << 10;  // bytes

struct StubParameters {
  StubRequest request;
  ResumeRegisters resume;
};

size_t StubSize() {
  return static_cast<size_t>(hpd_stub_end - hpd_stub);
}

uint64_t AlignUp(uint64_t value) {
  return (value + kAlignment - 1) / kAlignment * kAlignment;
}

bool IsNeverUnloaded(const MapEntry& entry, const std::string& exe) {
  const std::string_view name = FileName(entry.path);
  return entry.path == exe || name.starts_with("ld-") || name.starts_with("libc.so") ||
         name.starts_with("libc-2.");
}

// Behind the end of the segment, in its last page, which may be the first of another. The
// file says what stands there, so that the cave is healed, too, when an engine that was
// killed left its code.
std::optional<CodeCave> CaveBehindSegment(pid_t pid, const MapEntry& entry) {
  const ScopedFd fd = OpenMappedFile(pid, entry).fd;
  if (!fd.valid())
    return std::nullopt;
  const ElfContents contents = ReadElf(
      fd.get(), [](std::string_view) { return false; }, false);
  const uint64_t mapped_end = entry.offset + (entry.end - entry.start);
  for (const CodeSegment& segment : contents.code.all()) {
    const uint64_t end = AlignUp(segment.offset + segment.file_size);
    const auto has_code_there = [&](const CodeSegment& other) {
      return other.offset < end + StubSize() && other.offset + other.file_size > end;
    };
    if (end < entry.offset || end + StubSize() > mapped_end ||
        std::ranges::any_of(contents.code.all(), has_code_there))
      continue;
    CodeCave cave{.address = entry.start + (end - entry.offset),
                  .contents = std::vector<uint8_t>(StubSize())};
    // Shorter at the end of the file; the rest of the page is zero then.
    if (pread(fd.get(), cave.contents.data(), StubSize(), static_cast<off_t>(end)) < 0)
      continue;
    return cave;
  }
  return std::nullopt;
}

// The zeros at the end of the vdso.
std::optional<CodeCave> CaveInVdso(const RemoteProcess& process, const MapEntry& entry) {
  const size_t size = entry.end - entry.start;
  std::vector<uint8_t> bytes(std::min(size, kMaxVdso));
  if (size > kMaxVdso || !process.Read(entry.start, bytes.data(), size))
    return std::nullopt;
  size_t end = size;
  while (end > 0 && bytes[end - 1] == 0)
    --end;
  end = AlignUp(end + 1);
  if (end + StubSize() > size)
    return std::nullopt;
  return CodeCave{.address = entry.start + end,
                  .contents = std::vector<uint8_t>(StubSize())};
}

// Not when somebody else has put something there.
bool IsUsable(const RemoteProcess& process, CodeCave* cave) {
  std::vector<uint8_t> bytes(cave->contents.size());
  if (!process.Read(cave->address, bytes.data(), bytes.size()))
    return false;
  cave->is_in_use = bytes != cave->contents;
  return !cave->is_in_use || std::equal(hpd_stub, hpd_stub_parameters, bytes.begin());
}

}  // namespace

Result<CodeCave> FindCodeCave(const RemoteProcess& process,
                              const std::vector<MapEntry>& maps) {
  const pid_t view = process.view();
  std::string exe(PATH_MAX, '\0');
  const ssize_t length = readlink(ProcPath(view, "exe").c_str(), exe.data(), exe.size());
  exe.resize(length > 0 ? static_cast<size_t>(length) : 0);
  for (const MapEntry& entry : maps) {
    if (!entry.executable || entry.writable)
      continue;
    std::optional<CodeCave> cave;
    if (entry.inode != 0 && IsNeverUnloaded(entry, exe))
      cave = CaveBehindSegment(view, entry);
    else if (entry.path == "[vdso]")
      cave = CaveInVdso(process, entry);
    if (cave && IsUsable(process, &*cave))
      return *cave;
  }
  return Status(StatusCode::kUnavailable,
                "its code leaves no room for the first instructions of the profiler");
}

std::vector<uint8_t> MakeStub(const StubRequest& request, const ResumeRegisters& resume) {
  std::vector<uint8_t> stub(hpd_stub, hpd_stub_end);
  const StubParameters parameters{.request = request, .resume = resume};
  HPD_CHECK(hpd_stub_end - hpd_stub_parameters == sizeof(parameters));
  memcpy(stub.data() + (hpd_stub_parameters - hpd_stub), &parameters, sizeof(parameters));
  return stub;
}

}  // namespace heapprofd
