#include "cli/launch.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/scoped_fd.h"
#include "cli/options.h"
#include "wire/handshake.h"

namespace heapprofd {
namespace {

constexpr char kPreloadVariable[] = "LD_PRELOAD";
constexpr char kLibraryName[] = "libheapprofd_preload.so";
constexpr int kMaxScriptDepth = 4;

void SetEnvironment(const std::string& preload, const std::string& session) {
  const char* old = getenv(kPreloadVariable);
  const bool has_old = old != nullptr && *old != 0;
  setenv(kPreloadVariable, has_old ? (preload + ":" + old).c_str() : preload.c_str(), 1);
  setenv(kSessionVariable, session.c_str(), 1);
}

[[noreturn]] void BecomeProgram(const std::vector<std::string>& command,
                                const sigset_t& signal_mask,
                                int error_fd) {
  sigprocmask(SIG_SETMASK, &signal_mask, nullptr);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int error = errno;
  const ssize_t ignored = write(error_fd, &error, sizeof(error));
  static_cast<void>(ignored);
  _exit(kExitNoProgram);
}

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

// First bytes of the file; empty when it cannot be read.
std::string ReadHead(const std::string& path) {
  const ScopedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> head{};
  const ssize_t size = fd.valid() ? read(fd.get(), head.data(), head.size()) : -1;
  return size > 0 ? std::string(head.data(), static_cast<size_t>(size)) : std::string();
}

std::string InterpreterOf(const std::string& head) {
  size_t begin = head.find_first_not_of(" \t", 2);
  const size_t end = head.find_first_of(" \t\n", begin);
  return begin == std::string::npos ? "" : head.substr(begin, end - begin);
}

// True when the ELF file's program headers, as far as they are in `head`, name a loader.
bool HasLoader(const std::string& head) {
  Elf64_Ehdr header;
  memcpy(&header, head.data(), sizeof(header));
  for (size_t i = 0; i < header.e_phnum && i < 64; ++i) {
    const uint64_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
    if (at > head.size() || head.size() - at < sizeof(Elf64_Phdr))
      return true;  // not visible here: assume the usual
    Elf64_Phdr segment;
    memcpy(&segment, head.data() + at, sizeof(segment));
    if (segment.p_type == PT_INTERP)
      return true;
  }
  return false;
}

std::string ElfObstacle(const std::string& path, const std::string& head) {
  if (head.size() < sizeof(Elf64_Ehdr) || head[EI_CLASS] != ELFCLASS64)
    return path +
           " is a 32-bit program, and only 64-bit ones can be profiled; use its 64-bit "
           "build";
  if (!HasLoader(head))
    return path +
           " is statically linked, so a library cannot be preloaded into it; profile a "
           "dynamically linked "
           "build of it";

  struct stat status {};

  const bool is_setuid =
      stat(path.c_str(), &status) == 0 &&
      (((status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid()) ||
       ((status.st_mode & S_ISGID) != 0 && status.st_gid != getegid()));
  const bool has_capabilities =
      getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
  if ((is_setuid || has_capabilities) && geteuid() != 0)
    return path +
           " gains privileges when it starts (setuid or capabilities), so the loader "
           "ignores LD_PRELOAD; "
           "run it as the user it becomes, or profile a copy without these bits";
  return "";
}

}  // namespace

Launched Launch(const std::vector<std::string>& command,
                const std::string& preload,
                const sigset_t& signal_mask,
                const std::function<std::string(pid_t)>& environment_of) {
  Launched launched;
  std::array<int, 2> pipe_fds{};
  if (pipe2(pipe_fds.data(), O_CLOEXEC) != 0) {
    launched.error = {kExitFailure,
                      std::string("cannot create a pipe: ") + strerror(errno)};
    return launched;
  }
  const ScopedFd read_end(pipe_fds[0]);
  ScopedFd write_end(pipe_fds[1]);
  const pid_t pid = fork();
  if (pid < 0) {
    launched.error = {kExitFailure,
                      std::string("cannot start a process: ") + strerror(errno)};
    return launched;
  }
  if (pid == 0) {
    SetEnvironment(preload, environment_of(getpid()));
    BecomeProgram(command, signal_mask, write_end.get());
  }
  write_end.reset();
  int error = 0;
  if (read(read_end.get(), &error, sizeof(error)) ==
      static_cast<ssize_t>(sizeof(error))) {
    const bool is_missing = error == ENOENT || error == ENOTDIR;
    launched.error = {is_missing ? kExitNoProgram : kExitCannotRun,
                      "cannot run " + command[0] + ": " + strerror(error) +
                          (is_missing ? "; check the name and PATH"
                                      : "; check that it is an executable file")};
    return launched;
  }
  launched.pid = pid;
  return launched;
}

Result<std::string> FindPreloadLibrary() {
  std::array<char, PATH_MAX> self{};
  const ssize_t length = readlink("/proc/self/exe", self.data(), self.size() - 1);
  const std::string path(self.data(), length > 0 ? static_cast<size_t>(length) : 0);
  const std::string folder = path.substr(0, path.rfind('/'));
  for (const char* place : {"/", "/../lib/heapprofd/", "/../client/"}) {
    std::string candidate = folder + place + kLibraryName;
    std::array<char, PATH_MAX> real{};
    if (realpath(candidate.c_str(), real.data()) != nullptr)
      return std::string(real.data());
  }
  return Status(StatusCode::kNotFound, std::string("cannot find ") + kLibraryName +
                                           " near " + folder +
                                           "; build or install it again");
}

std::string ObstacleFor(const std::string& program) {
  std::string path = FindInPath(program).value_or("");
  for (int depth = 0; depth < kMaxScriptDepth; ++depth) {
    const std::string head = ReadHead(path);
    if (head.starts_with("#!")) {
      path = InterpreterOf(head);
      continue;
    }
    if (head.starts_with(ELFMAG))
      return ElfObstacle(path, head);
    return "";
  }
  return "";
}

}  // namespace heapprofd
