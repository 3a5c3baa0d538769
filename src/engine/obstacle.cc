#include "engine/obstacle.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "attach/allocators.h"
#include "base/files/foreign_file.h"
#include "rt/machine.h"
#include "unwind/elf_functions.h"

namespace heapprofd {
namespace {

constexpr int kMaxScriptDepth = 4;

std::optional<std::string> FindInPath(const std::string& program) {
  if (program.find('/') != std::string::npos)
    return program;
  const char* path = getenv("PATH");
  std::string rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  while (true) {
    const size_t colon = rest.find(':');
    const std::string folder = rest.substr(0, colon);
    std::string candidate = (folder.empty() ? "." : folder) + "/" + program;
    if (access(candidate.c_str(), X_OK) == 0)
      return candidate;
    if (colon == std::string::npos)
      return std::nullopt;
    rest = rest.substr(colon + 1);
  }
}

// First bytes of the file; empty when it cannot be read. The path may come from a target.
std::string ReadHead(const std::string& path, pid_t process, uint64_t patience_ns) {
  ForeignRequest request;
  request.paths = {path};
  request.process = process;
  const ScopedFd fd = OpenForeign(request, patience_ns).fd;
  std::array<char, 4096> head{};
  const ssize_t size = fd.valid() ? read(fd.get(), head.data(), head.size()) : -1;
  return size > 0 ? std::string(head.data(), static_cast<size_t>(size)) : std::string();
}

std::string InterpreterOf(const std::string& head) {
  size_t begin = head.find_first_not_of(" \t", 2);
  const size_t end = head.find_first_of(" \t\n", begin);
  return begin == std::string::npos ? "" : head.substr(begin, end - begin);
}

// The loader that an ELF file names, nullopt: it names none. "": that is not in `head`.
std::optional<std::string> LoaderOf(const std::string& head) {
  Elf64_Ehdr header;
  memcpy(&header, head.data(), sizeof(header));
  for (size_t i = 0; i < header.e_phnum && i < 64; ++i) {
    const uint64_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
    if (at > head.size() || head.size() - at < sizeof(Elf64_Phdr))
      return "";
    Elf64_Phdr segment;
    memcpy(&segment, head.data() + at, sizeof(segment));
    if (segment.p_type == PT_INTERP)
      return segment.p_offset < head.size() ? head.c_str() + segment.p_offset : "";
  }
  return std::nullopt;
}

bool GainsPrivileges(const std::string& path) {
  struct stat status {};

  const bool is_setuid =
      stat(path.c_str(), &status) == 0 &&
      (((status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid()) ||
       ((status.st_mode & S_ISGID) != 0 && status.st_gid != getegid()));
  return is_setuid || getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

unsigned MachineOf(const std::string& head) {
  Elf64_Half machine = EM_NONE;
  memcpy(&machine, head.data() + offsetof(Elf64_Ehdr, e_machine), sizeof(machine));
  return machine;
}

Obstacle ElfObstacle(const std::string& path, const std::string& head) {
  if (head.size() < sizeof(Elf64_Ehdr) || head[EI_CLASS] != ELFCLASS64)
    return Obstacle::k32Bit;
  if (MachineOf(head) != rt::kElfMachine)
    return Obstacle::kOtherMachine;
  if (!LoaderOf(head))
    return Obstacle::kStatic;
  return geteuid() != 0 && GainsPrivileges(path) ? Obstacle::kPrivileged
                                                 : Obstacle::kNone;
}

// What its symbols tell.
std::string InsteadOfPreloading(const std::string& file) {
  static constexpr std::string_view kGoMarker = "runtime.mallocgc";
  const ScopedFd fd = OpenForeignPath(file);
  const ElfContents contents = ReadElf(
      fd.get(),
      [](std::string_view name) {
        return name == "malloc" || name == "free" || name == kMallocThatNeverFrees ||
               name == kGoMarker;
      },
      /*use_full_table=*/true);
  if (contents.symbols.contains(kGoMarker))
    return ", and it is a Go program, whose allocator cannot be hooked; use Go's own "
           "pprof";
  if (HasWholeAllocator(contents))
    return " into it; start it by itself and record it with heap_profile -p PID, or "
           "profile a dynamically linked build of it";
  return ", and it has no symbols of malloc and free to find its allocator by; profile a "
         "dynamically linked build of it, or one with symbols by heap_profile -p PID";
}

}  // namespace

FoundObstacle FindObstacle(const std::string& program,
                           const std::string& directory,
                           pid_t process) {
  std::string path = FindInPath(program).value_or("");
  for (int depth = 0; depth < kMaxScriptDepth; ++depth) {
    if (!directory.empty() && !path.starts_with("/"))
      path.insert(0, directory + "/");
    const std::string head = ReadHead(path, process, kServingPatienceNs);
    if (head.starts_with(ELFMAG))
      return {.kind = ElfObstacle(path, head), .file = path};
    if (!head.starts_with("#!"))
      break;
    path = InterpreterOf(head);
  }
  return {};
}

std::string DescribeObstacle(const FoundObstacle& obstacle) {
  switch (obstacle.kind) {
    case Obstacle::kNone:
      break;
    case Obstacle::k32Bit:
      return obstacle.file +
             " is a 32-bit program, and only 64-bit ones can be profiled; use its 64-bit "
             "build";
    case Obstacle::kOtherMachine:
      return obstacle.file + " is a program for another machine, and only those for " +
             rt::kName + " can be profiled; use its build for this machine";
    case Obstacle::kStatic:
      return obstacle.file + " is statically linked, so a library cannot be preloaded" +
             InsteadOfPreloading(obstacle.file);
    case Obstacle::kPrivileged:
      return obstacle.file +
             " gains privileges when it starts (setuid or capabilities), so the loader "
             "ignores LD_PRELOAD; run heap_profile as the user it becomes, or profile a "
             "copy without these bits";
  }
  return "";
}

std::string MissingInterpreter(const std::string& program) {
  std::string path = FindInPath(program).value_or("");
  for (int depth = 0; depth < kMaxScriptDepth && !path.empty(); ++depth) {
    if (access(path.c_str(), F_OK) != 0)
      return depth == 0 ? "" : path;
    // Nothing runs that would have to wait meanwhile.
    const std::string head = ReadHead(path, 0, kOwnPatienceNs);
    if (head.starts_with("#!"))
      path = InterpreterOf(head);
    else if (head.starts_with(ELFMAG) && head.size() >= sizeof(Elf64_Ehdr))
      path = LoaderOf(head).value_or("");
    else
      break;
  }
  return "";
}

}  // namespace heapprofd
