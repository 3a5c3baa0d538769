// Starting programs, with real ones: what they find in their environment.
#include "cli/record/launch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/exit_code.h"
#include "cli/record/own_limits.h"

namespace heapprofd {
namespace {

namespace fs = std::filesystem;

class LaunchTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "launch_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    sigemptyset(&mask_);
    const Result<std::string> preload = FindPreloadLibrary();
    ASSERT_TRUE(preload.ok()) << preload.status().message();
    preload_ = preload.value();
  }

  void TearDown() override {
    unsetenv("LD_PRELOAD");
    fs::remove_all(folder_);
  }

  Launched Start(const std::vector<std::string>& command) {
    return Launch(command, preload_, {.mask = mask_},
                  [](pid_t pid) { return "session-of-" + std::to_string(pid); });
  }

  // What a shell command, launched, writes into the file $OUT of its own making.
  std::string OutputOf(const std::string& script) {
    const std::string path = folder_ + "/out";
    const Launched launched = Start({"/bin/sh", "-c", "(" + script + ") >" + path});
    EXPECT_GT(launched.pid, 0) << launched.error.message;
    EXPECT_EQ(ExitCodeOf(launched.pid), 0);
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static int ExitCodeOf(pid_t pid) {
    int status = 0;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
                                                                : -1;
  }

  std::string folder_;
  std::string preload_;
  sigset_t mask_{};
};

TEST_F(LaunchTest, TheProgramFindsTheLimitsThatTheToolFound) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 100;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &small), 0);
  LiftOwnLimits();
  rlimit lifted{};
  getrlimit(RLIMIT_NOFILE, &lifted);
  EXPECT_EQ(lifted.rlim_cur, before.rlim_max);
  EXPECT_EQ(OutputOf("ulimit -n"), "100\n");
  // SIGXFSZ is 25: bit 24 of the ignored signals.
  EXPECT_EQ(OutputOf("x=$(grep SigIgn /proc/self/status | cut -f2); "
                     "echo $(( (0x$x >> 24) & 1 ))"),
            "0\n");
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(LaunchTest, TheProgramFindsTheLibraryAndItsSession) {
  const Launched launched = Start({"/bin/sh", "-c",
                                   "test \"$LD_PRELOAD\" = " + preload_ +
                                       " && "
                                       "test \"$HEAPPROFD_SESSION\" = session-of-$$"});
  ASSERT_GT(launched.pid, 0);
  EXPECT_EQ(ExitCodeOf(launched.pid), 0);
}

TEST_F(LaunchTest, LibrariesThatAreAlreadyPreloadedStayBehindOurs) {
  setenv("LD_PRELOAD", "libm.so.6", 1);
  EXPECT_EQ(OutputOf("echo $LD_PRELOAD"), preload_ + ":libm.so.6\n");
}

TEST_F(LaunchTest, ArgumentsArriveAsTheyAre) {
  const Launched launched =
      Start({"/bin/sh", "-c", "test \"$1\" = 'a b' && test -z \"$2\" && test $# = 2",
             "name", "a b", ""});
  ASSERT_GT(launched.pid, 0);
  EXPECT_EQ(ExitCodeOf(launched.pid), 0);
}

TEST_F(LaunchTest, TheProgramsSignalMaskIsTheOneGiven) {
  sigaddset(&mask_, SIGUSR1);
  const std::string status = OutputOf("grep SigBlk /proc/self/status");
  EXPECT_EQ(status, "SigBlk:\t0000000000000200\n");
}

// As one whose file lies on a file system that does not answer.
TEST_F(LaunchTest, ASignalEndsTheWaitForAProgramThatDoesNotBegin) {
  std::array<int, 2> news{};
  std::array<int, 2> signals{};
  ASSERT_EQ(pipe2(news.data(), O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(signals.data(), O_CLOEXEC), 0);
  ASSERT_EQ(write(signals[1], "s", 1), 1);
  const Launched launched =
      Launch({"/bin/true"}, preload_, {.mask = mask_, .fd = signals[0]}, [&](pid_t) {
        char word = 0;
        return std::string(static_cast<size_t>(read(news[0], &word, 1)), 's');
      });
  ASSERT_GT(launched.pid, 0);
  EXPECT_EQ(waitpid(launched.pid, nullptr, WNOHANG), 0);
  ASSERT_EQ(write(news[1], "n", 1), 1);
  EXPECT_EQ(ExitCodeOf(launched.pid), 0);
}

TEST_F(LaunchTest, AMissingProgramIsToldApartFromOneThatCannotRun) {
  const Launched missing = Start({folder_ + "/nothing"});
  EXPECT_EQ(missing.pid, -1);
  EXPECT_EQ(missing.error.exit_code, kExitNoProgram);
  EXPECT_NE(missing.error.message.find("check the name and PATH"), std::string::npos);
  const Launched folder = Start({folder_});
  EXPECT_EQ(folder.pid, -1);
  EXPECT_EQ(folder.error.exit_code, kExitCannotRun);
  EXPECT_NE(folder.error.message.find("cannot run " + folder_), std::string::npos);
}

// The kernel's answer is that of a folder that may not be searched, also for root.
TEST_F(LaunchTest, AFolderOfThisNameInPathIsNoProgram) {
  fs::create_directory(folder_ + "/backup");
  const std::string path = getenv("PATH");
  setenv("PATH", folder_.c_str(), 1);
  const Launched launched = Start({"backup"});
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(launched.error.exit_code, kExitNoProgram);
  EXPECT_EQ(launched.error.message,
            "cannot run backup: No such file or directory; check the name and PATH");
}

TEST_F(LaunchTest, AMissingInterpreterIsNamed) {
  const std::string script = folder_ + "/script";
  std::ofstream(script) << "#!/no/such/interpreter -x\n";
  fs::permissions(script, fs::perms::owner_all);
  const Launched launched = Start({script});
  EXPECT_EQ(launched.error.exit_code, kExitNoProgram);
  EXPECT_EQ(launched.error.message,
            "cannot run " + script +
                ": its interpreter /no/such/interpreter does not exist; install that, or "
                "name another in the program");
}

TEST_F(LaunchTest, TheLibraryOfThisBuildIsFound) {
  EXPECT_EQ(fs::path(preload_).filename(), "libheapprofd_preload.so");
  EXPECT_TRUE(fs::path(preload_).is_absolute());
}

}  // namespace
}  // namespace heapprofd
