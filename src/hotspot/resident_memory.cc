#include "hotspot/resident_memory.h"

#include <dirent.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>

#include "base/files/guarded_read.h"
#include "base/files/proc_files.h"
#include "hotspot/text_lines.h"

namespace heapprofd {
namespace {

constexpr uint64_t kSmapsPatienceNs = 5'000'000'000;  // the kernel walks all page tables
constexpr size_t kMostThreads = 10'000;
constexpr size_t kMaxSmaps = size_t{64} << 20;
constexpr char kThreadsEnd = '\0';  // between the stack pointers and smaps

// "202 0x1 0x2 ... SP PC", "-1 SP PC" or "running".
uint64_t StackPointerIn(const std::string& syscall) {
  const size_t last = syscall.rfind(' ');
  const size_t before = last == std::string::npos || last == 0
                            ? std::string::npos
                            : syscall.rfind(' ', last - 1);
  return before == std::string::npos
             ? 0
             : strtoull(syscall.c_str() + before + 1, nullptr, 16);
}

// Stack pointers as text, a line each, and smaps behind them.
std::string ReadAll(pid_t pid) {
  std::string text;
  const std::string tasks = ProcPath(pid, "task");
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(tasks.c_str()), closedir);
  size_t threads = 0;
  while (const dirent* entry = directory != nullptr && threads < kMostThreads
                                   ? readdir(directory.get())
                                   : nullptr) {
    if (entry->d_name[0] == '.')
      continue;
    constexpr size_t kMaxSyscallText = 256;
    const std::string file = tasks + "/" + entry->d_name + "/syscall";
    text += std::to_string(StackPointerIn(ReadProcFile(file, kMaxSyscallText))) + "\n";
    ++threads;
  }
  text += kThreadsEnd;
  return text + ReadProcFile(ProcPath(pid, "smaps"), kMaxSmaps);
}

struct NamedMapping {
  ReservedRange range;
  std::string_view name;
};

// "7f00-7f10 rw-p 00000000 00:00 0     NAME"; nullopt: it is another line.
std::optional<NamedMapping> MappingIn(std::string_view line) {
  NamedMapping mapping;
  const char* const end = line.data() + line.size();
  const auto begin_read = std::from_chars(line.data(), end, mapping.range.begin, 16);
  if (begin_read.ec != std::errc() || begin_read.ptr == end || *begin_read.ptr != '-')
    return std::nullopt;
  const auto end_read = std::from_chars(begin_read.ptr + 1, end, mapping.range.end, 16);
  if (end_read.ec != std::errc() || end_read.ptr == end || *end_read.ptr != ' ')
    return std::nullopt;
  constexpr int kFieldsBeforeName = 5;
  size_t at = 0;
  for (int i = 0; i < kFieldsBeforeName && at != std::string_view::npos; ++i)
    at = line.find_first_not_of(' ', std::min(line.find(' ', at), line.size()));
  mapping.name = line.substr(std::min(at, line.size()));
  return mapping;
}

bool IsIn(uint64_t address, const std::vector<ReservedRange>& ranges) {
  return std::ranges::any_of(ranges, [address](const ReservedRange& range) {
    return address >= range.begin && address < range.end;
  });
}

}  // namespace

ResidentMemory ResidentMemoryIn(std::string_view smaps,
                                const MachineMemory& memory,
                                std::vector<uint64_t> stack_pointers) {
  ResidentMemory sums;
  sums.thread_count = static_cast<uint32_t>(stack_pointers.size());
  std::ranges::sort(stack_pointers);
  uint64_t* sum = &sums.rest;  // of the mapping that is being read
  bool is_mapped_again = false;
  while (!smaps.empty()) {
    const std::string_view line = TakeLine(&smaps);
    // ZGC maps its heap several times: each page counts once.
    const std::string_view counted = is_mapped_again ? "Pss:" : "Rss:";
    if (line.starts_with(counted)) {
      const uint64_t bytes =
          strtoull(std::string(line.substr(counted.size())).c_str(), nullptr, 10) * 1024;
      *sum += bytes;
      sums.all += bytes;
    }
    const std::optional<NamedMapping> mapping = MappingIn(line);
    if (!mapping)
      continue;
    const ReservedRange& range = mapping->range;
    is_mapped_again = mapping->name.starts_with("/memfd:java_heap");
    const auto stacks_end = std::ranges::lower_bound(stack_pointers, range.end);
    const auto stacks_begin = std::ranges::lower_bound(stack_pointers, range.begin);
    if (IsIn(range.begin, memory.heap_ranges) || is_mapped_again) {
      sum = &sums.heap;
    } else if (IsIn(range.begin, memory.code_ranges)) {
      sum = &sums.code;
    } else if (stacks_begin < stacks_end) {
      sum = &sums.stacks;
      sums.stack_count += static_cast<uint32_t>(stacks_end - stacks_begin);
    } else {
      sum = mapping->name.starts_with("/") ? &sums.files : &sums.rest;
    }
  }
  return sums;
}

std::optional<ResidentMemory> ReadResidentMemory(pid_t pid, const MachineMemory& memory) {
  const GuardedText read = AskAbout(
      pid, [pid] { return ReadAll(pid); }, kSmapsPatienceNs);
  const size_t threads_end = read.text.find(kThreadsEnd);
  if (read.is_late || threads_end == std::string::npos)
    return std::nullopt;
  std::vector<uint64_t> stack_pointers;
  std::string_view lines = std::string_view(read.text).substr(0, threads_end);
  while (!lines.empty())
    stack_pointers.push_back(
        strtoull(std::string(TakeLine(&lines)).c_str(), nullptr, 10));
  const ResidentMemory sums =
      ResidentMemoryIn(std::string_view(read.text).substr(threads_end + 1), memory,
                       std::move(stack_pointers));
  return sums.all > 0 ? std::optional(sums) : std::nullopt;
}

}  // namespace heapprofd
