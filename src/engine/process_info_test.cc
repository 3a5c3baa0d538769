// What processes say about themselves is theirs to choose, and ours to keep small.
#include "engine/process_info.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace heapprofd {
namespace {

// A process that waits, with these arguments.
class Waiter {
 public:
  explicit Waiter(const std::vector<std::string>& arguments) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    pid_ = fork();
    if (pid_ == 0)
      Execute(arguments, ready[1]);
    close(ready[1]);
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1) << "the program did not start";
    close(ready[0]);
  }

  ~Waiter() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }

 private:
  [[noreturn]] static void Execute(const std::vector<std::string>& arguments, int ready) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(ready, STDOUT_FILENO);
    const std::string script = "echo; kill -STOP $$";
    std::vector<std::string> all = {"sh", "-c", script};
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::vector<char*> raw;
    for (std::string& argument : all)
      raw.push_back(argument.data());
    raw.push_back(nullptr);
    execv("/bin/sh", raw.data());
    _exit(127);
  }

  pid_t pid_ = -1;
};

TEST(DescribeProcessTest, ACommandLineIsItsArguments) {
  const Waiter waiter({"name", "", "a b"});
  const ProcessDescription process = DescribeProcess(waiter.pid());
  ASSERT_EQ(process.cmdline.size(), 6u);
  EXPECT_EQ(process.cmdline[0], "sh");
  EXPECT_EQ(process.cmdline[4], "");
  EXPECT_EQ(process.cmdline[5], "a b");
  EXPECT_EQ(process.uid, getuid());
}

TEST(DescribeProcessTest, ManyEmptyArgumentsAreCutAndTheCutIsSaid) {
  const Waiter waiter(std::vector<std::string>(65'000));
  const ProcessDescription process = DescribeProcess(waiter.pid());
  EXPECT_EQ(process.cmdline.size(), 257u);
  EXPECT_EQ(process.cmdline.back(), "[the rest is left out]");
}

TEST(DescribeProcessTest, ALongCommandLineIsCutAndTheCutIsSaid) {
  const Waiter waiter({std::string(100'000, 'x')});
  const ProcessDescription process = DescribeProcess(waiter.pid());
  size_t bytes = 0;
  for (const std::string& argument : process.cmdline)
    bytes += argument.size();
  EXPECT_LE(bytes, 4200u);
  EXPECT_EQ(process.cmdline.back(), "[the rest is left out]");
}

}  // namespace
}  // namespace heapprofd
