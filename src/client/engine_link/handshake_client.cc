#include "client/engine_link/handshake_client.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <atomic>
#include <cstddef>
#include <cstring>

#include "client/confinement.h"
#include "client/engine_link/engine_wait.h"
#include "client/loaded_objects.h"
#include "client/own_memory.h"
#include "rt/auxiliary_vector.h"
#include "rt/syscall.h"

// The environment as the kernel laid it out is found from the stack under glibc's loader
// (`environ` is not set yet when the first hook runs), from the variable elsewhere.
extern "C" {
extern void* __libc_stack_end __attribute__((weak));
extern char** __environ __attribute__((weak));
}

namespace heapprofd {
namespace {

char** InitialEnvironment() {
  if (&__libc_stack_end != nullptr && FirstObject() != nullptr) {
    auto* words = static_cast<uint64_t*>(__libc_stack_end);
    const uint64_t argument_count = words[0];
    return reinterpret_cast<char**>(words + 1 + argument_count + 1);
  }
  return &__environ != nullptr ? __environ : nullptr;
}

// The program has rights that whoever started it lacks (setuid, file capabilities). The
// preload library is not loaded into it, but the client library may be linked with it,
// and the environment is not to be trusted.
bool IsPrivileged() {
  constexpr uint64_t kUnknown = ~uint64_t{0};
  const uint64_t secure = rt::AuxiliaryValue(AT_SECURE, kUnknown);
  if (secure != kUnknown)
    return secure != 0;
  return rt::Syscall(SYS_getuid) != rt::Syscall(SYS_geteuid) ||
         rt::Syscall(SYS_getgid) != rt::Syscall(SYS_getegid);
}

}  // namespace

const char* FindVariable(const char* name) {
  if (IsPrivileged())
    return nullptr;
  char** entry = InitialEnvironment();
  for (; entry != nullptr && *entry != nullptr; ++entry) {
    const char* text = *entry;
    const char* wanted = name;
    while (*wanted != 0 && *text == *wanted) {
      ++text;
      ++wanted;
    }
    if (*wanted == 0 && *text == '=')
      return text + 1;
  }
  return nullptr;
}

namespace {

// The last handshake of this process, or of the one that it was forked from, ended
// without an answer.
constinit std::atomic<bool> g_was_left_waiting{};

class Socket {
 public:
  explicit Socket(long fd) : fd_(fd) {}

  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  ~Socket() {
    if (fd_ >= 0)
      rt::Syscall(SYS_close, fd_);
  }

  long fd() const { return fd_; }

 private:
  long fd_;
};

bool SendAll(long fd, const Hello& hello) {
  return rt::Syscall(SYS_sendto, fd, rt::ToArg(&hello), sizeof(hello), MSG_NOSIGNAL) ==
         static_cast<long>(sizeof(hello));
}

// The time that a handshake may take.
class Deadline {
 public:
  Deadline()
      : start_ns_(EngineWaitClockNs()),
        end_ns_(start_ns_ + (g_was_left_waiting.load() || StandsEngineStill()
                                 ? kShortHandshakeTimeoutNs
                                 : kHandshakeTimeoutNs)) {}

  // The engine is not stopped.
  void Extend() { end_ns_ = start_ns_ + kLongHandshakeTimeoutNs; }

  bool IsOver() const { return EngineWaitClockNs() >= end_ns_; }

  // What comes next at the socket does not take longer than what is left.
  void Limit(long fd) const {
    constexpr uint64_t kLeastNs = 1'000'000;  // 0 would mean for ever
    const uint64_t now = EngineWaitClockNs();
    const uint64_t left = now + kLeastNs < end_ns_ ? end_ns_ - now : kLeastNs;
    const timeval timeout{
        .tv_sec = static_cast<time_t>(left / 1'000'000'000),
        .tv_usec = static_cast<suseconds_t>(left % 1'000'000'000 / 1000)};
    for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO})
      rt::Syscall(SYS_setsockopt, fd, SOL_SOCKET, option, rt::ToArg(&timeout),
                  sizeof(timeout));
  }

 private:
  uint64_t start_ns_;
  uint64_t end_ns_;
};

// As recvmsg, until the time is up.
long ReceiveOne(long fd, const Deadline& deadline, msghdr* message) {
  constexpr long kInterrupted = -4;  // EINTR, by a handler of the program's
  long got = kInterrupted;
  while (got == kInterrupted && !deadline.IsOver()) {
    deadline.Limit(fd);
    got = rt::Syscall(SYS_recvmsg, fd, rt::ToArg(message), MSG_CMSG_CLOEXEC);
  }
  return got;
}

// Receives the Welcome and its descriptors; unused places of `fds` stay -1.
bool ReceiveWelcome(long fd, Deadline& deadline, Welcome* welcome, int fds[2]) {
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  iovec part{.iov_base = welcome, .iov_len = sizeof(*welcome)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  long got = ReceiveOne(fd, deadline, &message);
  while (got == static_cast<long>(sizeof(*welcome)) &&
         welcome->status == WelcomeStatus::kWait) {
    deadline.Extend();
    message.msg_controllen = sizeof(control);
    got = ReceiveOne(fd, deadline, &message);
  }
  if (rt::IsError(got))
    return false;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count && i < 2; ++i)
      memcpy(&fds[i], CMSG_DATA(header) + i * sizeof(int), sizeof(int));
  }
  return got == static_cast<long>(sizeof(*welcome)) &&
         welcome->magic == kHandshakeMagic && welcome->version == kWireVersion &&
         welcome->status == WelcomeStatus::kProfile && fds[0] >= 0 && fds[1] >= 0;
}

// As mmap(2).
// NOLINTNEXTLINE(readability-function-size)
long Map(
    void* address, uint64_t size, int protection, int flags, long fd, uint64_t offset) {
  return rt::Syscall(SYS_mmap, rt::ToArg(address), static_cast<long>(size), protection,
                     flags, fd, static_cast<long>(offset));
}

// Fork slots, header and slots; the tables' first page, from which they are mapped when
// there is something for them; and the ring, once more behind itself. nullptr:
// impossible.
std::byte* MapClientBlock(long fd, uint64_t ring_size) {
  const uint64_t total = kClientMapped + 2 * ring_size;
  const long base =
      Map(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (rt::IsError(base))
    return nullptr;
  auto* start = reinterpret_cast<std::byte*>(base);
  const int protection = PROT_READ | PROT_WRITE;
  const int flags = MAP_SHARED | MAP_FIXED;
  if (rt::IsError(Map(start, kClientMapped, protection, flags, fd, 0)) ||
      rt::IsError(
          Map(start + kClientMapped, ring_size, protection, flags, fd, kRingOffset)) ||
      rt::IsError(Map(start + kClientMapped + ring_size, ring_size, protection, flags, fd,
                      kRingOffset))) {
    rt::Syscall(SYS_munmap, base, static_cast<long>(total));
    return nullptr;
  }
  LeaveOutOfCores(start, total);
  return start;
}

// Changes `session` only on success: threads may still look at what it says about an
// earlier one.
bool MapSession(ClientSession& session, const Welcome& welcome, const int fds[2]) {
  if (welcome.ring_size < kMinRingSize || welcome.ring_size > kMaxRingSize ||
      (welcome.ring_size & (welcome.ring_size - 1)) != 0)
    return false;
  const long engine = Map(nullptr, sizeof(EngineBlock), PROT_READ, MAP_SHARED, fds[0], 0);
  if (rt::IsError(engine))
    return false;
  std::byte* start = MapClientBlock(fds[1], welcome.ring_size);
  const long page =
      Map(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == nullptr || rt::IsError(page)) {
    rt::Syscall(SYS_munmap, engine, sizeof(EngineBlock));
    if (start != nullptr)
      rt::Syscall(SYS_munmap, rt::ToArg(start),
                  static_cast<long>(kClientMapped + 2 * welcome.ring_size));
    if (!rt::IsError(page))
      rt::Syscall(SYS_munmap, page, kPageSize);
    return false;
  }
  LeaveOutOfCores(reinterpret_cast<const void*>(engine), sizeof(EngineBlock));
  auto* client = reinterpret_cast<ClientBlock*>(start);
  auto* memory = reinterpret_cast<SessionMemory*>(page);
  *memory = {.engine = reinterpret_cast<const EngineBlock*>(engine),
             .client = client,
             .client_size = kClientMapped + 2 * welcome.ring_size,
             .seed = welcome.seed,
             .ring = RingWriter(&client->ring, start + kClientMapped, welcome.ring_size),
             .tables = nullptr};
  session.memory.store(memory, std::memory_order_release);
  return true;
}

constexpr long kNoEntry = -2;                // ENOENT
constexpr long kNoPermission = -13;          // EACCES
constexpr long kNoDirectory = -20;           // ENOTDIR
constexpr long kNoDescriptorAnywhere = -23;  // ENFILE
constexpr long kNoDescriptor = -24;          // EMFILE

ConnectResult WhyNoSocket(long error) {
  return error == kNoDescriptor || error == kNoDescriptorAnywhere
             ? ConnectResult::kNoDescriptor
             : ConnectResult::kFailed;
}

ConnectResult ConnectTo(const ClientSession& session, long fd) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  static_assert(sizeof(address.sun_path) == sizeof(session.socket_path));
  memcpy(address.sun_path, session.socket_path, sizeof(address.sun_path));
  const long result = rt::Syscall(SYS_connect, fd, rt::ToArg(&address), sizeof(address));
  if (result == kNoEntry || result == kNoPermission || result == kNoDirectory)
    return ConnectResult::kUnreached;
  if (rt::IsError(result))
    return ConnectResult::kFailed;
  // A socket of another user's at this place: not to be trusted with our memory.
  ucred peer{};
  socklen_t length = sizeof(peer);
  const bool is_trusted =
      !rt::IsError(rt::Syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED,
                               rt::ToArg(&peer), rt::ToArg(&length))) &&
      (peer.uid == 0 || static_cast<long>(peer.uid) == rt::Syscall(SYS_geteuid));
  return is_trusted ? ConnectResult::kConnected : ConnectResult::kFailed;
}

}  // namespace

bool ReadSessionVariable(ClientSession& session) {
  const char* text = FindVariable(kSessionVariable);
  if (text == nullptr)
    return false;
  session.only_pid = 0;
  for (; *text >= '0' && *text <= '9'; ++text)
    session.only_pid = session.only_pid * 10 + (*text - '0');
  if (*text == ',')
    ++text;
  size_t length = 0;
  while (text[length] != 0 && length < kMaxSocketPath)
    ++length;
  if (length == 0 || text[length] != 0)
    return false;
  memcpy(session.socket_path, text, length);
  session.socket_path[length] = 0;
  return true;
}

bool IsProfilingForbidden() {
  const char* text = FindVariable(kSessionVariable);
  return text != nullptr && *text == 0;
}

ConnectResult Connect(ClientSession& session, ClientOrigin origin) {
  const Socket socket(rt::Syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.fd() < 0)
    return WhyNoSocket(socket.fd());
  Deadline deadline;
  deadline.Limit(socket.fd());
  const ConnectResult result = ConnectTo(session, socket.fd());
  if (result != ConnectResult::kConnected) {
    g_was_left_waiting.store(deadline.IsOver());
    return result;
  }
  const Hello hello{.magic = kHandshakeMagic,
                    .version = kWireVersion,
                    .origin = origin,
                    .tsc = rt::ReadTsc()};
  Welcome welcome{};
  int fds[2] = {-1, -1};
  const bool welcomed =
      SendAll(socket.fd(), hello) && ReceiveWelcome(socket.fd(), deadline, &welcome, fds);
  const bool is_unanswered = !welcomed && deadline.IsOver();
  g_was_left_waiting.store(is_unanswered);
  const Socket engine_file(fds[0]);
  const Socket client_file(fds[1]);
  if (is_unanswered)
    return ConnectResult::kUnanswered;
  return welcomed && MapSession(session, welcome, fds) ? ConnectResult::kConnected
                                                       : ConnectResult::kFailed;
}

namespace {

void MapNobodys(const void* address, uint64_t size, int protection) {
  Map(const_cast<void*>(address), size, protection,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  LeaveOutOfCores(address, size);
}

}  // namespace

ClientTables* SessionTables() {
  SessionMemory& memory = *g_session.memory.load(std::memory_order_acquire);
  ClientTables* there = SessionMemory::TablesOf(memory);
  if (HPD_LIKELY(there != nullptr))
    return there;
  if (IsConfined())
    return nullptr;
  // A size of 0 makes a second mapping of a shared page, and of what lies behind it.
  const long mapped = rt::Syscall(SYS_mremap, rt::ToArg(memory.client->heap_slots), 0,
                                  sizeof(ClientTables), MREMAP_MAYMOVE);
  if (rt::IsError(mapped))
    return nullptr;
  auto* tables = reinterpret_cast<ClientTables*>(mapped);
  LeaveOutOfCores(tables, sizeof(ClientTables));
  if (__atomic_compare_exchange_n(&memory.tables, &there, tables, /*weak=*/false,
                                  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return tables;
  rt::Syscall(SYS_munmap, mapped, sizeof(ClientTables));
  return there;
}

void RetireClient(const SessionMemory& memory) {
  constexpr size_t kKept = offsetof(ClientBlock, ring);
  static_assert(offsetof(ClientBlock, fork_slots) == 0 && kKept % kPageSize == 0);
  MapNobodys(reinterpret_cast<std::byte*>(memory.client) + kKept,
             memory.client_size - kKept, PROT_READ | PROT_WRITE);
  if (const ClientTables* tables = SessionMemory::TablesOf(memory))
    MapNobodys(tables, sizeof(ClientTables), PROT_READ | PROT_WRITE);
}

void Retire(ClientSession& session) {
  const SessionMemory* memory = session.memory.load(std::memory_order_acquire);
  if (memory == nullptr)
    return;
  MapNobodys(memory->client, offsetof(ClientBlock, ring), PROT_READ | PROT_WRITE);
  RetireClient(*memory);
  MapNobodys(memory->engine, sizeof(EngineBlock), PROT_READ);
}

ConnectResult SendExecNotice(const ClientSession& session, const ExecNotice& notice) {
  // An engine that is stopped or busy does not hold up the program.
  const Socket socket(
      rt::Syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.fd() < 0)
    return WhyNoSocket(socket.fd());
  const ConnectResult result = ConnectTo(session, socket.fd());
  if (result == ConnectResult::kConnected)
    rt::Syscall(SYS_sendto, socket.fd(), rt::ToArg(&notice), sizeof(notice),
                MSG_NOSIGNAL);
  return result;
}

void Unmap(SessionMemory* memory) {
  rt::Syscall(SYS_munmap, rt::ToArg(memory->engine), sizeof(EngineBlock));
  rt::Syscall(SYS_munmap, rt::ToArg(memory->client),
              static_cast<long>(memory->client_size));
  if (const ClientTables* tables = SessionMemory::TablesOf(*memory))
    rt::Syscall(SYS_munmap, rt::ToArg(tables), sizeof(ClientTables));
  rt::Syscall(SYS_munmap, rt::ToArg(memory), kPageSize);
}

}  // namespace heapprofd
