#include "cli/top/top_events.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>

namespace heapprofd {
namespace {

// The signals that tell of another size, or of another program that had the terminal.
// Those that stop who uses it from the background are blocked, too.
ScopedFd ScreenSignals() {
  const sigset_t stops = SetOf({SIGTTIN, SIGTTOU});
  sigprocmask(SIG_BLOCK, &stops, nullptr);
  const sigset_t signals = SetOf({SIGWINCH, SIGCONT});
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return DescriptorOf(signals);
}

void WatchFor(uint32_t events, int fd, const ScopedFd& to) {
  epoll_event event{.events = events, .data = {.fd = fd}};
  if (epoll_ctl(to.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    epoll_ctl(to.get(), EPOLL_CTL_MOD, fd, &event);
}

}  // namespace

TopEvents::TopEvents()
    : resized_(ScreenSignals()),
      urgent_signals_(DescriptorOf(SetOf({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP}))),
      wake_(epoll_create1(EPOLL_CLOEXEC)) {
  // Not SIGCHLD, by which every process that has looked for names says that it is done.
  WatchFor(EPOLLIN, urgent_signals_.get(), wake_);
}

void TopEvents::Wait(const Screen* screen, int timeout_ms) {
  if (screen != nullptr)  // in the background others' keys are none of our business
    WatchFor(screen->is_entered() ? uint32_t{EPOLLIN} : 0, screen->fd(), wake_);
  std::array<pollfd, 3> fds = {
      pollfd{.fd = wake_.get(), .events = POLLIN, .revents = 0},
      pollfd{.fd = signals_.fd(), .events = POLLIN, .revents = 0},
      pollfd{.fd = resized_.get(), .events = POLLIN, .revents = 0}};
  poll(fds.data(), fds.size(), timeout_ms);
}

bool TopEvents::TakeResized() {
  signalfd_siginfo info{};
  return read(resized_.get(), &info, sizeof(info)) > 0;
}

}  // namespace heapprofd
