// The status line on a terminal of the test's own: what the program prints is never on
// it.
#include "cli/record/status_line.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/scoped_fd.h"

namespace heapprofd {
namespace {

// Standard error is the terminal meanwhile.
class StatusLineTest : public testing::Test {
 protected:
  void SetUp() override {
    winsize size{};
    size.ws_row = 24;
    size.ws_col = 40;
    int master = -1;
    int slave = -1;
    ASSERT_EQ(openpty(&master, &slave, nullptr, nullptr, &size), 0);
    master_ = ScopedFd(master);
    kept_ = ScopedFd(dup(STDERR_FILENO));
    dup2(slave, STDERR_FILENO);
    close(slave);
    setenv("TERM", "xterm", 1);
  }

  void TearDown() override { dup2(kept_.get(), STDERR_FILENO); }

  // What has been written since the last time.
  std::string Shown() {
    EXPECT_EQ(write(STDERR_FILENO, "|", 1), 1);
    std::string text;
    for (char c = 0; read(master_.get(), &c, 1) == 1 && c != '|';)
      text += c;
    return text;
  }

  ScopedFd master_;
  ScopedFd kept_;
};

TEST_F(StatusLineTest, TheLastRowIsKeptOutOfWhatScrollsAndGivenBack) {
  {
    StatusLine line(true);
    line.Show("* 00:01");
    const std::string shown = Shown();
    EXPECT_NE(shown.find("\033[1;23r"), std::string::npos) << shown;  // rows that scroll
    EXPECT_NE(shown.find("\033[24;1H* 00:01\033[K\0338"), std::string::npos) << shown;
    line.Show("* 00:02");
    EXPECT_EQ(Shown(), "\0337\033[24;1H* 00:02\033[K\0338");
  }
  EXPECT_EQ(Shown(), "\0337\033[24;1H\033[K\033[r\0338");
}

TEST_F(StatusLineTest, TheTextFitsAndSteersNothing) {
  StatusLine line(true);
  line.Show("evil\033[2J" + std::string(100, 'x'));
  const std::string shown = Shown();
  EXPECT_NE(shown.find("evil?[2J" + std::string(31, 'x') + "\033[K"), std::string::npos)
      << shown;
}

TEST_F(StatusLineTest, NothingIsShownWhereNobodyWantsOrUnderstandsIt) {
  StatusLine(false).Show("text");
  setenv("TERM", "dumb", 1);
  StatusLine(true).Show("text");
  EXPECT_EQ(Shown(), "");
}

}  // namespace
}  // namespace heapprofd
