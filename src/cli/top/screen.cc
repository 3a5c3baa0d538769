#include "cli/top/screen.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace heapprofd {
namespace {

// Sequences of VT100 and xterm: the other screen, no cursor, no breaking of long lines.
constexpr char kBeginScreen[] = "\033[?1049h\033[?25l\033[?7l";
constexpr char kEndScreen[] = "\033[?7h\033[?25h\033[?1049l";
constexpr char kToTop[] = "\033[H";
constexpr char kClearToEnd[] = "\033[K";
constexpr char kClearRest[] = "\033[J";
constexpr int kTerminalPatienceMs = 1000;  // with a terminal that takes nothing

// An open file of our own, so that nobody else's reads and writes stop waiting.
ScopedFd OpenTerminal() {
  return ScopedFd(open("/proc/self/fd/1", O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

}  // namespace

bool Screen::IsPossible() {
  const char* terminal = getenv("TERM");
  // Of another terminal than the one that controls us nobody says who is in front of it.
  return tcgetpgrp(STDIN_FILENO) >= 0 && tcgetpgrp(STDOUT_FILENO) >= 0 &&
         terminal != nullptr && std::string_view(terminal) != "dumb" &&
         OpenTerminal().valid();
}

Screen::Screen(int wake_fd) : terminal_(OpenTerminal()), wake_fd_(wake_fd) {}

bool Screen::IsInFront() const {
  return tcgetpgrp(terminal_.get()) == getpgrp();
}

void Screen::Enter() {
  if (is_entered_ || !IsInFront() || tcgetattr(terminal_.get(), &before_) != 0)
    return;
  termios keys = before_;
  keys.c_lflag &=
      ~static_cast<tcflag_t>(ICANON | ECHO);     // signals' keys stay what they are
  keys.c_iflag &= ~static_cast<tcflag_t>(IXON);  // Ctrl-S would keep the end from it
  keys.c_cc[VMIN] = 1;
  keys.c_cc[VTIME] = 0;
  is_entered_ = tcsetattr(terminal_.get(), TCSANOW, &keys) == 0;
  Write(kBeginScreen, wake_fd_);
}

void Screen::Leave() {
  if (!is_entered_)
    return;
  is_entered_ = false;
  Write(kEndScreen, /*wake_fd=*/-1);  // now or never
  if (IsInFront())                    // else its modes are another's by now
    tcsetattr(terminal_.get(), TCSANOW, &before_);
}

ScreenSize Screen::size() const {
  winsize size{};
  ioctl(terminal_.get(), TIOCGWINSZ, &size);
  // A terminal that does not say is one of the usual size.
  return {.rows = size.ws_row == 0 ? 24u : size.ws_row,
          .columns = size.ws_col == 0 ? 80u : size.ws_col};
}

bool Screen::TakeKeys(std::string* keys) {
  if (!is_entered_)
    return tcgetpgrp(terminal_.get()) >= 0;
  std::array<char, 256> buffer{};
  const ssize_t got = read(terminal_.get(), buffer.data(), buffer.size());
  if (got < 0 && errno == EIO && tcgetpgrp(terminal_.get()) >= 0) {
    Leave();  // sent to the background meanwhile
    return true;
  }
  if (got > 0)
    keys->append(buffer.data(), static_cast<size_t>(got));
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

void Screen::Draw(const std::vector<std::string>& lines) {
  if (!is_entered_)
    return;
  std::string text = kToTop;
  for (const std::string& line : lines)
    text += (&line == lines.data() ? "" : "\n") + line + kClearToEnd;
  Write(text + kClearRest, wake_fd_);
}

void Screen::Write(const std::string& text, int wake_fd) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t written =
        write(terminal_.get(), text.data() + done, text.size() - done);
    if (written > 0) {
      done += static_cast<size_t>(written);
      continue;
    }
    if (written < 0 && errno != EAGAIN && errno != EINTR)
      return;  // it is gone, which its keys will tell
    std::array<pollfd, 2> fds = {
        pollfd{.fd = terminal_.get(), .events = POLLOUT, .revents = 0},
        pollfd{.fd = wake_fd, .events = POLLIN, .revents = 0}};
    if (poll(fds.data(), fds.size(), kTerminalPatienceMs) <= 0 || fds[1].revents != 0)
      return;
  }
}

}  // namespace heapprofd
