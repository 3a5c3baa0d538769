#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "base/scoped_fd.h"

namespace heapprofd {
namespace {

// "exit 0", "signal 31": how a child ends that does this and then nothing.
std::string EndOf(const std::function<int()>& act) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core{};
    setrlimit(RLIMIT_CORE, &no_core);
    _exit(act());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? "exit " + std::to_string(WEXITSTATUS(status))
                           : "signal " + std::to_string(WTERMSIG(status));
}

const std::string kKilled = "signal " + std::to_string(SIGSYS);

std::string StatusLine(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":"))
      return line.substr(line.find_first_not_of(" \t", name.size() + 1));
  }
  return "";
}

// With other users to become: a user namespace may have but one.
bool IsRoot() {
  std::ifstream map("/proc/self/uid_map");
  uint64_t inside = 0;
  uint64_t outside = 0;
  uint64_t count = 0;
  return geteuid() == 0 && map >> inside >> outside >> count && count > 65534;
}

TEST(SandboxTest, CapabilitiesAreGoneFromEverySet) {
  EXPECT_EQ(EndOf([] {
              if (!DropCapabilities(0).ok())
                return 1;
              for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"}) {
                if (StatusLine(set) != "0000000000000000")
                  return 2;
              }
              return IsRoot() && StatusLine("CapBnd") != "0000000000000000" ? 3 : 0;
            }),
            "exit 0");
}

TEST(SandboxTest, WhatIsKeptStays) {
  if (!IsRoot())
    GTEST_SKIP() << "only root has capabilities to keep";
  EXPECT_EQ(EndOf([] {
              const uint64_t kept =
                  CapabilityBit(CAP_SYS_PTRACE) | CapabilityBit(CAP_BPF);
              return DropCapabilities(kept).ok() &&
                             StatusLine("CapEff") == "0000008000080000" &&
                             StatusLine("CapBnd") == "0000008000080000"
                         ? 0
                         : 1;
            }),
            "exit 0");
}

TEST(SandboxTest, AnotherUserHasNoWayBack) {
  if (!IsRoot())
    GTEST_SKIP() << "only root can become another user";
  EXPECT_EQ(EndOf([] {
              const std::array<gid_t, 2> groups = {1234, 1235};
              if (!BecomeUser(4321, 1234, groups).ok())
                return 1;
              if (StatusLine("Uid") != "4321\t4321\t4321\t4321" ||
                  StatusLine("Gid") != "1234\t1234\t1234\t1234" ||
                  StatusLine("Groups") != "1234 1235 ")
                return 2;
              if (StatusLine("CapPrm") != "0000000000000000")
                return 3;
              return seteuid(0) == 0 || setuid(0) == 0 || setgid(0) == 0 ? 4 : 0;
            }),
            "exit 0");
}

TEST(SandboxTest, WhoMayNotChangeUsersMayOnlyStayWhoHeIs) {
  EXPECT_EQ(EndOf([] {
              if (IsRoot() && !BecomeUser(4321, 4321, {}).ok())
                return 1;
              if (!BecomeUser(geteuid(), getegid(), {}).ok())
                return 2;
              return BecomeUser(5000, 5000, {}).message() ==
                             "cannot become user 5000: Operation not permitted"
                         ? 0
                         : 3;
            }),
            "exit 0");
}

TEST(SandboxTest, OnlyTheKeptDescriptorsStayOpen) {
  EXPECT_EQ(EndOf([] {
              const int a = open("/dev/null", O_RDONLY | O_CLOEXEC);
              const int b = fcntl(a, F_DUPFD_CLOEXEC, 100);
              const int c = fcntl(a, F_DUPFD_CLOEXEC, 200);
              const std::array<int, 4> kept = {c, -1, a, c};
              CloseAllBut(kept);
              for (const int fd : {0, 1, 2, b, 201, 1000}) {
                if (fcntl(fd, F_GETFD) >= 0)
                  return 1;
              }
              return fcntl(a, F_GETFD) >= 0 && fcntl(c, F_GETFD) >= 0 ? 0 : 2;
            }),
            "exit 0");
}

TEST(SandboxTest, NothingIsDumped) {
  EXPECT_EQ(
      EndOf([] { return MakeUndumpable().ok() && prctl(PR_GET_DUMPABLE) == 0 ? 0 : 1; }),
      "exit 0");
}

std::string EndRestricted(const std::function<int()>& act,
                          SystemCalls allowed = SystemCalls::kUseWhatIsOpen) {
  return EndOf([&] { return RestrictSystemCalls(allowed).ok() ? act() : 99; });
}

TEST(SandboxTest, ComputingAndReadingWork) {
  EXPECT_EQ(EndOf([] {
              const ScopedFd file(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
              if (!RestrictSystemCalls(SystemCalls::kUseWhatIsOpen).ok())
                return 1;
              struct stat status {};
              if (fstat(file.get(), &status) != 0)
                return 2;
              const auto size = static_cast<size_t>(status.st_size);
              const void* bytes =
                  mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
              if (bytes == MAP_FAILED)
                return 3;
              std::string copy(size, '\0');
              if (pread(file.get(), copy.data(), size, 0) <= 0)
                return 4;
              return copy.starts_with("\177ELF") ? 0 : 5;
            }),
            "exit 0");
}

TEST(SandboxTest, NoFileIsReached) {
  EXPECT_EQ(EndRestricted([] {
              struct stat status {};
              return open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES &&
                             stat("/etc/passwd", &status) != 0 && errno == EACCES
                         ? 0
                         : 1;
            }),
            "exit 0");
}

TEST(SandboxTest, WhatNoReaderDoesEndsIt) {
  EXPECT_EQ(EndRestricted([] { return socket(AF_INET, SOCK_STREAM, 0); }), kKilled);
  EXPECT_EQ(EndRestricted([] { return fork() == 0 ? 1 : 2; }), kKilled);
  EXPECT_EQ(EndRestricted([] { return execl("/bin/true", "true", nullptr); }), kKilled);
  EXPECT_EQ(EndRestricted([] { return kill(getppid(), 0); }), kKilled);
  EXPECT_EQ(EndRestricted([] { return setuid(0); }), kKilled);
  EXPECT_EQ(EndRestricted([] {
              mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                   0);
              return 0;
            }),
            kKilled);
}

TEST(SandboxTest, AnAbortIsSeenAsOne) {
  EXPECT_EQ(EndRestricted([]() -> int { abort(); }), "signal 6");
}

TEST(SandboxTest, ThreadsMayBeAllowedAndProcessesNot) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's threads make other calls";
#endif
  constexpr SystemCalls kThreads = SystemCalls::kUseWhatIsOpenInThreads;
  EXPECT_EQ(EndRestricted(
                [] {
                  int answer = 1;
                  std::thread([&] { answer = 0; }).join();
                  return answer;
                },
                kThreads),
            "exit 0");
  EXPECT_EQ(EndRestricted([] { return fork() == 0 ? 1 : 2; }, kThreads), kKilled);
}

TEST(SandboxTest, AReaderHasNothingButItsDescriptors) {
  EXPECT_EQ(EndOf([] {
              const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
              const std::array<int, 1> kept = {file};
              if (!BecomeReader(kept, SystemCalls::kUseWhatIsOpen).ok())
                return 1;
              if (IsRoot() || fcntl(1, F_GETFD) >= 0)
                return 2;
              std::string text(8192, '\0');
              if (pread(file, text.data(), text.size(), 0) <= 0)
                return 3;
              return text.find("CapEff:\t0000000000000000") != std::string::npos &&
                             text.find("NoNewPrivs:\t1") != std::string::npos
                         ? 0
                         : 4;
            }),
            "exit 0");
}

}  // namespace
}  // namespace heapprofd
