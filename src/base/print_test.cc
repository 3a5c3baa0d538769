// What could not be written is told, and no cause of something else.
#include "base/print.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/scoped_fd.h"

namespace heapprofd {
namespace {

// Runs in a child, whose standard output is a full disk; its exit code.
template <typename Function>
int WithFullOutput(Function function) {
  const pid_t child = fork();
  if (child == 0) {
    const ScopedFd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
    dup2(full.get(), STDOUT_FILENO);
    _exit(function());
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool Says(const Status& status, const std::string& text) {
  return status.message().find(text) != std::string::npos;
}

TEST(FlushOutputTest, AFullDiskIsNamed) {
  EXPECT_EQ(WithFullOutput([] {
              Print(stdout, "some text");
              return Says(FlushOutput(), strerror(ENOSPC)) ? 0 : 1;
            }),
            0);
}

TEST(FlushOutputTest, AWriteThatFailedEarlierHasItsOwnCause) {
  EXPECT_EQ(WithFullOutput([] {
              Print(stdout, "%s", std::string(size_t{3} * BUFSIZ, 'x').c_str());
              errno = ENOENT;
              const Status status = FlushOutput();
              return Says(status, strerror(ENOSPC)) ? 0 : 1;
            }),
            0);
}

// What Print() writes into a file.
template <typename... Arguments>
std::string Printed(const char* format, const Arguments&... arguments) {
  char* text = nullptr;
  size_t size = 0;
  FILE* const file = open_memstream(&text, &size);
  Print(file, format, arguments...);
  fclose(file);
  std::string printed(text, size);
  free(text);
  return printed;
}

TEST(PrintTest, AnArgumentBeginsNoLineAndSteersNoTerminal) {
  EXPECT_EQ(Printed("a %s\n%d b\n", "x\nheap_profile: forged\r\033[2J\1\2", 5),
            "a x?heap_profile: forged??[2J??\n5 b\n");
  EXPECT_EQ(Printed("%s\n", "\n"), "?\n");
  EXPECT_EQ(Printed("100 %%\n\n"), "100 %\n\n");
}

}  // namespace
}  // namespace heapprofd
