// A program that speaks the wire protocol and means ill; tools/attack runs it as an
// ordinary user.
//
// hello SOCKET COUNT [ARGUMENT...]
//   says Hello so many times; the arguments only make its command line long
// slow-maps SOCKET
//   64,000 mappings, and a sample of 512 addresses that are in none of them
// hold SOCKET FD early|late
//   says Hello and waits, before that (early) or after it was welcomed (late), in an mmap
//   of this file with the kernel's lock on its own mappings; late, it waits for a byte
//   of its input before that, and sends samples before and after
// rubbish SOCKET SECONDS
//   one session after the other with hostile rings, tables and positions
// flood SOCKET SECONDS
//   one session with as many different stacks and labels as the ring takes
// vforkers COUNT
//   so many threads wait in vfork; SIGALRM, SIGTERM and SIGUSR1 have their usual effect
// allocate
//   no attack: allocates without pause until its standard input, a pipe, is closed, and
//   tells how long the longest allocation took, in ms
//
// "ready" on standard output says that the attack is under way. Whatever it cannot do it
// says and ends with 1.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "wire/handshake.h"
#include "wire/ring_writer.h"

namespace {

using heapprofd::ClientBlock;
using heapprofd::RecordType;
using Clock = std::chrono::steady_clock;

[[noreturn]] void Die(const char* what) {
  perror(what);
  exit(1);
}

void SayReady() {
  puts("ready");
  fflush(stdout);
}

class Deadline {
 public:
  explicit Deadline(const char* seconds)
      : end_(Clock::now() +
             std::chrono::milliseconds(static_cast<int>(atof(seconds) * 1000))) {}

  bool is_over() const { return Clock::now() >= end_; }

 private:
  Clock::time_point end_;
};

// What a Welcome brings: the client's side of one session.
class HostileSession {
 public:
  HostileSession() = default;
  HostileSession(const HostileSession&) = delete;
  HostileSession& operator=(const HostileSession&) = delete;

  ~HostileSession() {
    if (block_ != nullptr)
      munmap(block_, heapprofd::kRingOffset + 2 * ring_size_);
    for (const int fd : fds_)
      close(fd);
  }

  // False: nobody wants this program (any more).
  bool Begin(const char* path) {
    const int fd = Connect(path);
    const heapprofd::Hello hello{.magic = heapprofd::kHandshakeMagic,
                                 .version = heapprofd::kWireVersion,
                                 .origin = heapprofd::ClientOrigin::kDormant,
                                 .tsc = 0};
    const bool is_wanted =
        send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) == sizeof(hello) && Receive(fd);
    close(fd);
    return is_wanted;
  }

  // Header, tables and ring; the ring once more behind itself.
  void Map() {
    const size_t size = heapprofd::kRingOffset + ring_size_;
    void* space = mmap(nullptr, size + ring_size_, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED)
      Die("cannot map the session");
    block_ = static_cast<std::byte*>(space);
    const int protection = PROT_READ | PROT_WRITE;
    if (mmap(block_, size, protection, MAP_SHARED | MAP_FIXED, fds_[1], 0) ==
            MAP_FAILED ||
        mmap(block_ + size, ring_size_, protection, MAP_SHARED | MAP_FIXED, fds_[1],
             heapprofd::kRingOffset) == MAP_FAILED)
      Die("cannot map the session");
    writer_ = heapprofd::RingWriter(&block().ring, ring(), ring_size_);
  }

  ClientBlock& block() { return *reinterpret_cast<ClientBlock*>(block_); }

  std::byte* ring() { return block_ + heapprofd::kRingOffset; }

  uint64_t ring_size() const { return ring_size_; }

  // False: the ring is full.
  bool Write(RecordType type, const void* payload, size_t size) {
    const auto reservation = writer_.Reserve(type, size);
    if (reservation.payload == nullptr)
      return false;
    memcpy(reservation.payload, payload, size);
    writer_.Commit(reservation);
    return true;
  }

 private:
  static int Connect(const char* path) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
      Die("cannot connect");
    return fd;
  }

  bool Receive(int fd) {
    heapprofd::Welcome welcome{};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
    iovec part{.iov_base = &welcome, .iov_len = sizeof(welcome)};
    msghdr message{};
    do {
      message = {};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL) != sizeof(welcome))
        return false;
    } while (welcome.status == heapprofd::WelcomeStatus::kWait);
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_len != CMSG_LEN(2 * sizeof(int)))
      return false;
    memcpy(fds_.data(), CMSG_DATA(header), 2 * sizeof(int));
    ring_size_ = welcome.ring_size;
    return true;
  }

  std::array<int, 2> fds_{-1, -1};
  std::byte* block_ = nullptr;
  uint64_t ring_size_ = 0;
  heapprofd::RingWriter writer_;
};

// A sample whose frames are all unknown.
std::vector<uint64_t> SampleOf(const std::vector<uint64_t>& frames,
                               uint64_t address,
                               uint64_t labels) {
  heapprofd::SampleRecord record{};
  record.address = address;
  record.size = 100;
  record.interval = 4096;
  record.thread_id = static_cast<uint32_t>(getpid());
  record.frame_count = static_cast<uint16_t>(frames.size());
  record.flags = labels != 0 ? heapprofd::kSampleHasLabels : 0;
  std::vector<uint64_t> words(sizeof(record) / sizeof(uint64_t));
  memcpy(words.data(), &record, sizeof(record));
  if (labels != 0)
    words.push_back(labels);
  words.insert(words.end(), frames.begin(), frames.end());
  return words;
}

int SayHello(const char* path, int count) {
  SayReady();
  int wanted = 0;
  for (int i = 0; i < count; ++i) {
    HostileSession session;
    wanted += session.Begin(path) ? 1 : 0;
  }
  printf("%d\n", wanted);
  return 0;
}

// Every second page is another mapping, just below vm.max_map_count.
void MakeManyMappings() {
  constexpr size_t kPairs = 32'000;
  constexpr size_t kPage = heapprofd::kPageSize;
  void* space = mmap(nullptr, 2 * kPairs * kPage, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED)
    Die("cannot map");
  for (size_t i = 0; i < kPairs; ++i) {
    if (mprotect(static_cast<std::byte*>(space) + 2 * i * kPage, kPage, PROT_READ) != 0)
      return;  // the limit is lower here
  }
}

// As many addresses as a sample can have, none of them mapped.
std::vector<std::vector<uint64_t>> SamplesOfNowhere() {
  std::vector<uint64_t> frames;
  for (uint64_t i = 0; i < heapprofd::kMaxFrames; ++i)
    frames.push_back(0x1000 * (i + 1));
  std::vector<std::vector<uint64_t>> samples;
  for (uint64_t i = 0; i < 40; ++i)
    samples.push_back(SampleOf(frames, 0x10'000 + i * 16, 0));
  return samples;
}

void WriteAll(HostileSession& session,
              const std::vector<std::vector<uint64_t>>& samples) {
  for (const std::vector<uint64_t>& sample : samples)
    session.Write(RecordType::kSample, sample.data(), sample.size() * sizeof(uint64_t));
}

int MakeMapsSlow(const char* path) {
  MakeManyMappings();
  HostileSession session;
  if (!session.Begin(path))
    Die("nobody wants the program");
  session.Map();
  WriteAll(session, SamplesOfNowhere());
  SayReady();
  pause();
  return 0;
}

// Whether it waits in this system call.
bool IsIn(int syscall_file, int number) {
  std::array<char, 64> text{};
  const ssize_t size = pread(syscall_file, text.data(), text.size() - 1, 0);
  return size > 0 && atoi(text.data()) == number;
}

// In place of a mapping that is there: so the kernel has that one locked, too, and who
// reads `maps` by single mappings waits for it. From then on this program waits as well
// when it maps anything, or touches memory that it has not touched before.
void HoldMappings(int fd) {
  void* page =
      mmap(nullptr, heapprofd::kPageSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED)
    Die("cannot map");
  std::atomic<pid_t> thread{0};
  std::atomic<bool> is_observed{false};
  static std::atomic<bool> is_over{false};
  std::thread([page, fd, &thread, &is_observed] {
    thread = static_cast<pid_t>(syscall(SYS_gettid));
    while (!is_observed)
      sched_yield();
    mmap(page, heapprofd::kPageSize, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
    is_over = true;  // its user's file system has answered
    pause();
  }).detach();
  while (thread == 0)
    sched_yield();
  const std::string path = "/proc/self/task/" + std::to_string(thread) + "/syscall";
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 || IsIn(file, SYS_mmap))
    Die("cannot observe a thread");
  is_observed = true;
  while (!is_over && !IsIn(file, SYS_mmap))
    sched_yield();
}

// Without anything that could touch new memory.
void SayWhileHolding(const char* line) {
  if (write(STDOUT_FILENO, line, strlen(line)) < 0)
    _exit(1);
}

int HoldWhileRecorded(const char* path, int fd, bool is_early) {
  const std::vector<std::vector<uint64_t>> samples = SamplesOfNowhere();
  HostileSession session;
  if (is_early) {
    HoldMappings(fd);
    SayWhileHolding("ready\n");
  }
  if (!session.Begin(path))
    Die("nobody wants the program");
  if (!is_early) {
    session.Map();
    WriteAll(session, samples);
    SayWhileHolding("welcomed\n");
    char go = 0;
    if (read(STDIN_FILENO, &go, 1) != 1)  // until all of them are: who is late waits
      return 1;
    HoldMappings(fd);
    WriteAll(session, samples);
    SayWhileHolding("ready\n");
  }
  pause();
  return 0;
}

class Rubbish {
 public:
  void WriteSession(HostileSession& session) {
    FillTables(session.block());
    for (int i = 0; i < 30'000; ++i)
      WriteOne(session);
    if (Chance(4))
      FillBytes(session.ring(), session.ring_size());
    if (Chance(3))
      FillBytes(&session.block().ring, sizeof(heapprofd::RingHeader));
    if (Chance(3))
      FillBytes(session.block().slots, sizeof(session.block().slots));
  }

  uint64_t Next() { return random_(); }

 private:
  bool Chance(uint64_t of) { return random_() % of == 0; }

  void FillBytes(void* at, size_t size) {
    auto* words = static_cast<uint64_t*>(at);
    for (size_t i = 0; i < size / sizeof(uint64_t); ++i)
      words[i] = random_();
  }

  // No terminating zeros, and what a terminal would take for a command.
  void FillTables(ClientBlock& block) {
    FillBytes(block.heaps, sizeof(block.heaps));
    FillBytes(block.labels, sizeof(block.labels));
    constexpr std::array<const char*, 3> kNames = {"\033]0;hostile\007",
                                                   "../../../../tmp/hostile", "%s%n\n"};
    for (size_t i = 0; i < kNames.size(); ++i) {
      strcpy(block.heaps[i].name, kNames[i]);
      strcpy(block.labels[i].key, kNames[i]);
    }
  }

  void WriteOne(HostileSession& session) {
    std::vector<uint64_t> words(random_() % 64);
    for (uint64_t& word : words)
      word = Chance(2) ? random_() : random_() % 512;
    if (Chance(2)) {
      std::vector<uint64_t> frames(
          words.begin(), words.begin() + static_cast<ptrdiff_t>(words.size() / 2));
      words = SampleOf(frames, random_(), Chance(2) ? random_() : 0);
      if (Chance(3))
        words[random_() % words.size()] = random_();
    }
    session.Write(static_cast<RecordType>(1 + random_() % 7), words.data(),
                  words.size() * sizeof(uint64_t));
  }

  std::mt19937_64 random_{20260101};
};

int WriteRubbish(const char* path, const char* seconds) {
  const Deadline deadline(seconds);
  Rubbish rubbish;
  SayReady();
  int sessions = 0;
  for (; !deadline.is_over(); ++sessions) {
    HostileSession session;
    if (!session.Begin(path))
      break;
    session.Map();
    rubbish.WriteSession(session);
    usleep(100'000);  // it shall be read before the next session ends this one
  }
  printf("%d\n", sessions);
  return 0;
}

int Flood(const char* path, const char* seconds) {
  const Deadline deadline(seconds);
  Rubbish rubbish;
  HostileSession session;
  if (!session.Begin(path))
    Die("nobody wants the program");
  session.Map();
  SayReady();
  while (!deadline.is_over()) {
    std::vector<uint64_t> frames(16);
    for (uint64_t& frame : frames)
      frame = rubbish.Next() >> 20;
    const std::vector<uint64_t> sample =
        SampleOf(frames, rubbish.Next() & ~uint64_t{15}, 0);
    if (!session.Write(RecordType::kSample, sample.data(),
                       sample.size() * sizeof(uint64_t)))
      usleep(1000);  // full
  }
  return 0;
}

// The parent of a vfork waits until its child execs or ends: this one takes its time.
[[noreturn]] void WaitInVfork() {
  const timespec long_time{.tv_sec = 60, .tv_nsec = 0};
  while (true) {
    if (vfork() == 0) {
      nanosleep(&long_time, nullptr);
      _exit(0);
    }
  }
}

int RunVforkers(int count) {
  for (int i = 0; i < count; ++i)
    std::thread(WaitInVfork).detach();
  usleep(300'000);
  SayReady();
  WaitInVfork();
}

int Allocate() {
  SayReady();
  Clock::duration longest{};
  pollfd input{.fd = STDIN_FILENO, .events = 0, .revents = 0};  // POLLHUP comes anyway
  while (poll(&input, 1, 0) == 0) {
    const auto begin = Clock::now();
    void* volatile block = malloc(100'000);
    free(block);
    longest = std::max(longest, Clock::now() - begin);
  }
  printf("%ld\n",
         static_cast<long>(
             std::chrono::duration_cast<std::chrono::milliseconds>(longest).count()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "allocate")
    return Allocate();
  if (what == "hello" && argc > 3)
    return SayHello(argv[2], atoi(argv[3]));
  if (what == "slow-maps" && argc > 2)
    return MakeMapsSlow(argv[2]);
  if (what == "hold" && argc > 4)
    return HoldWhileRecorded(argv[2], atoi(argv[3]), argv[4] == std::string("early"));
  if (what == "rubbish" && argc > 3)
    return WriteRubbish(argv[2], argv[3]);
  if (what == "flood" && argc > 3)
    return Flood(argv[2], argv[3]);
  if (what == "vforkers" && argc > 2)
    return RunVforkers(atoi(argv[2]));
  fputs("hostile_client: unknown attack; its source says which there are\n", stderr);
  return 2;
}
