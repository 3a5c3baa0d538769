#include "engine/process_info.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>

#include "base/files/guarded_read.h"
#include "base/files/proc_files.h"
#include "engine/target/target_text.h"

namespace heapprofd {
namespace {

// Of a command line: a process can have megabytes of arguments, and 65,000 empty ones
// take two megabytes here.
constexpr size_t kMaxCommandBytes = 4096;
constexpr size_t kMaxArguments = 256;
constexpr char kCutMark[] = "[the rest is left out]";

std::string ReadStatus(pid_t pid) {
  constexpr size_t kStatusTextSize = 8192;
  return ReadProcFile(ProcPath(pid, "status"), kStatusTextSize);
}

std::vector<std::string> ReadCommand(pid_t pid) {
  std::string text = ReadMemoryFile(pid, "cmdline", kMaxCommandBytes + 1).text;
  bool is_cut = text.size() > kMaxCommandBytes;
  text.resize(std::min(text.size(), kMaxCommandBytes));
  std::vector<std::string> arguments;
  std::istringstream stream(text);
  for (std::string argument; std::getline(stream, argument, '\0');) {
    if (arguments.size() == kMaxArguments) {
      is_cut = true;
      break;
    }
    arguments.push_back(argument);
  }
  if (is_cut)
    arguments.emplace_back(kCutMark);
  return arguments;
}

std::string ReadName(const std::string& path) {
  std::string name = ReadProcFile(path, 64);
  if (!name.empty() && name.back() == '\n')
    name.pop_back();
  return name;
}

}  // namespace

ProcessDescription DescribeProcess(pid_t pid) {
  ProcessDescription process;
  process.pid = pid;
  process.cmdline = ReadCommand(pid);
  process.comm = ReadName(ProcPath(pid, "comm"));
  if (process.cmdline.empty())
    process.cmdline.push_back(process.comm);
  process.executable = ReadProcessLink(pid, "exe").text;

  struct stat status {};

  if (stat(ProcPath(pid, "").c_str(), &status) == 0)
    process.uid = status.st_uid;
  const std::string parent = StatusField(ReadStatus(pid), "PPid");
  process.parent_pid = atoi(parent.c_str());  // NOLINT(cert-err34-c): 0 when it is gone
  return process;
}

std::string ThreadName(pid_t pid, uint32_t tid) {
  const std::string file = "task/" + std::to_string(tid) + "/comm";
  const std::string name = ReadName(ProcPath(pid, file));
  return TextFromTarget(name.c_str(), name.size() + 1);
}

namespace {

// Value in KiB of a line "Name:   123 kB".
uint64_t FieldKib(const std::string& text, const std::string& name) {
  const size_t at = text.find("\n" + name + ":");
  return at == std::string::npos
             ? 0
             : strtoull(text.c_str() + at + name.size() + 2, nullptr, 10);
}

}  // namespace

uint64_t AnonymousKib(pid_t pid) {
  const std::string text = ReadStatus(pid);
  return FieldKib(text, "RssAnon") + FieldKib(text, "VmSwap");
}

MemoryStatus ReadMemoryStatus(pid_t pid) {
  const std::string text = ReadStatus(pid);
  MemoryStatus status;
  status.context.rss_kib = FieldKib(text, "VmRSS");
  status.context.anonymous_kib = FieldKib(text, "RssAnon");
  status.context.swap_kib = FieldKib(text, "VmSwap");
  status.image = {.code_kib = FieldKib(text, "VmExe"),
                  .peak_kib = FieldKib(text, "VmPeak")};
  return status;
}

MemoryContext ReadMemoryContext(pid_t pid) {
  const std::string text = ReadMemoryFile(pid, "smaps_rollup", 8192).text;
  if (text.empty())
    return ReadMemoryStatus(pid).context;
  MemoryContext context;
  context.rss_kib = FieldKib(text, "Rss");
  context.anonymous_kib = FieldKib(text, "Anonymous");
  context.swap_kib = FieldKib(text, "Swap");
  context.pss_kib = FieldKib(text, "Pss");
  context.private_dirty_kib = FieldKib(text, "Private_Dirty");
  return context;
}

bool MemoryImage::MayBecome(const MemoryImage& later) const {
  return later.code_kib == code_kib && later.peak_kib >= peak_kib;
}

uint64_t ProcessCpuNs(pid_t pid) {
  clockid_t clock{};
  timespec used{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
    return 0;
  return static_cast<uint64_t>(used.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(used.tv_nsec);
}

}  // namespace heapprofd
