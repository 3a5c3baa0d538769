// Threads that sit in every system call which a stop of the process can end with EINTR.
// No signal reaches them: whatever interrupts them is not the program's doing. Runs until
// it is told to stop by SIGTERM; ends with 1, and names the calls, when any was
// interrupted.
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace {

constexpr int kMs = 300;  // each call lasts so long
constexpr timespec kPause{.tv_sec = 0, .tv_nsec = kMs * 1'000'000L};

struct Sleeper {
  const char* name;
  std::function<long()> call;
  std::atomic<long> rounds{0};
  std::atomic<long> interrupted{0};
};

std::vector<Sleeper*> sleepers;

void Add(const char* name, std::function<long()> call) {
  sleepers.push_back(new Sleeper{.name = name, .call = std::move(call)});
}

timespec Soon() {
  timespec end{};
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_nsec += kPause.tv_nsec;
  end.tv_sec += end.tv_nsec / 1'000'000'000;
  end.tv_nsec %= 1'000'000'000;
  return end;
}

void LimitWaiting(int socket) {
  const timeval patience{.tv_sec = 0, .tv_usec = kMs * 1000};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

// A socket that never gets anything; with `is_full` it takes nothing, either.
int SilentSocket(bool is_full) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
    abort();
  std::vector<char> bytes(1 << 16);
  while (is_full && send(pair[0], bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
  }
  LimitWaiting(pair[0]);
  return pair[0];
}

void AddWaits() {
  const int epoll = epoll_create1(0);
  Add("epoll_wait", [=] {
    epoll_event event;
    return epoll_wait(epoll, &event, 1, kMs);
  });
  Add("epoll_pwait", [=] {
    epoll_event event;
    sigset_t but_one;  // not SIGTERM, which would end this call
    sigfillset(&but_one);
    sigdelset(&but_one, SIGUSR1);
    return epoll_pwait(epoll, &event, 1, kMs, &but_one);
  });
  Add("epoll_pwait2", [=] {
    epoll_event event;
    return syscall(SYS_epoll_pwait2, epoll, &event, 1, &kPause, nullptr, 0);
  });
  Add("poll", [] { return poll(nullptr, 0, kMs); });
  Add("ppoll", [] { return ppoll(nullptr, 0, &kPause, nullptr); });
  Add("select", [] {
    timeval pause{.tv_sec = 0, .tv_usec = kMs * 1000};
    return select(0, nullptr, nullptr, nullptr, &pause);
  });
  Add("pselect", [] { return pselect(0, nullptr, nullptr, nullptr, &kPause, nullptr); });
  Add("nanosleep", [] { return nanosleep(&kPause, nullptr); });
  Add("clock_nanosleep", [] {
    const timespec end = Soon();
    errno = clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &end, nullptr);
    return errno == 0 ? 0 : -1;
  });
  Add("sigtimedwait", [] {
    sigset_t some;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR2);
    return sigtimedwait(&some, nullptr, &kPause);
  });
  Add("sem_timedwait", [] {
    static sem_t semaphore;
    const timespec end = Soon();
    return sem_timedwait(&semaphore, &end);
  });
}

void AddTransfers() {
  Add("recv", [fd = SilentSocket(false)] {
    char byte = 0;
    return recv(fd, &byte, 1, 0);
  });
  Add("read", [fd = SilentSocket(false)] {
    char byte = 0;
    return read(fd, &byte, 1);
  });
  Add("recvmsg", [fd = SilentSocket(false)] {
    char byte = 0;
    iovec part{.iov_base = &byte, .iov_len = 1};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    return recvmsg(fd, &message, 0);
  });
  Add("send", [fd = SilentSocket(true)] { return send(fd, "x", 1, MSG_NOSIGNAL); });
  Add("write", [fd = SilentSocket(true)] { return write(fd, "x", 1); });
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  LimitWaiting(listener);
  listen(listener, 1);
  Add("accept", [=] { return accept(listener, nullptr, nullptr); });
  const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  const itimerspec beat{.it_interval = kPause, .it_value = kPause};
  timerfd_settime(timer, 0, &beat, nullptr);
  Add("read of a timer", [=] {
    uint64_t count = 0;
    return read(timer, &count, sizeof(count));
  });
}

void AddQueues() {
  const int semaphores = semget(IPC_PRIVATE, 1, 0600);
  const int queue = msgget(IPC_PRIVATE, 0600);
  Add("semtimedop", [=] {
    sembuf take{.sem_num = 0, .sem_op = -1, .sem_flg = 0};
    const long result = semtimedop(semaphores, &take, 1, &kPause);
    return result;
  });
  static int ids[2];
  ids[0] = semaphores;
  ids[1] = queue;
  atexit([] {
    semctl(ids[0], 0, IPC_RMID);
    msgctl(ids[1], IPC_RMID, nullptr);
  });
}

}  // namespace

int main() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  AddWaits();
  AddTransfers();
  AddQueues();
  for (Sleeper* sleeper : sleepers) {
    std::thread([sleeper] {
      while (true) {
        const bool is_interrupted = sleeper->call() < 0 && errno == EINTR;
        sleeper->interrupted += is_interrupted ? 1 : 0;
        ++sleeper->rounds;
      }
    }).detach();
  }
  puts("ready");
  fflush(stdout);
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  int signal = 0;
  sigwait(&end, &signal);
  bool is_clean = true;
  for (const Sleeper* sleeper : sleepers) {
    if (sleeper->interrupted != 0 || sleeper->rounds == 0)
      printf("%s: %ld of %ld interrupted\n", sleeper->name, sleeper->interrupted.load(),
             sleeper->rounds.load());
    is_clean &= sleeper->interrupted == 0;
  }
  fflush(stdout);
  exit(is_clean ? 0 : 1);
}
