#include "client/handshake_client.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cstring>

#include "client/loaded_objects.h"
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

}  // namespace

const char* FindVariable(const char* name) {
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

// Receives the Welcome and its descriptors; unused places of `fds` stay -1.
bool ReceiveWelcome(long fd, Welcome* welcome, int fds[2]) {
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  iovec part{.iov_base = welcome, .iov_len = sizeof(*welcome)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const long got = rt::Syscall(SYS_recvmsg, fd, rt::ToArg(&message), MSG_CMSG_CLOEXEC);
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

// Header and ring, and the ring once more behind itself; nullptr: impossible.
std::byte* MapClientBlock(long fd, uint64_t ring_size) {
  const uint64_t total = kRingOffset + 2 * ring_size;
  const long base =
      Map(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (rt::IsError(base))
    return nullptr;
  auto* start = reinterpret_cast<std::byte*>(base);
  const int protection = PROT_READ | PROT_WRITE;
  if (rt::IsError(Map(start, kRingOffset + ring_size, protection, MAP_SHARED | MAP_FIXED,
                      fd, 0)) ||
      rt::IsError(Map(start + kRingOffset + ring_size, ring_size, protection,
                      MAP_SHARED | MAP_FIXED, fd, kRingOffset))) {
    rt::Syscall(SYS_munmap, base, static_cast<long>(total));
    return nullptr;
  }
  return start;
}

// Changes `session` only on success: threads may still look at what it says about an
// earlier one.
bool MapSession(Session& session, const Welcome& welcome, const int fds[2]) {
  if (welcome.ring_size < kMinRingSize || welcome.ring_size > kMaxRingSize ||
      (welcome.ring_size & (welcome.ring_size - 1)) != 0)
    return false;
  const long engine = Map(nullptr, sizeof(EngineBlock), PROT_READ, MAP_SHARED, fds[0], 0);
  if (rt::IsError(engine))
    return false;
  std::byte* start = MapClientBlock(fds[1], welcome.ring_size);
  if (start == nullptr) {
    rt::Syscall(SYS_munmap, engine, sizeof(EngineBlock));
    return false;
  }
  session.engine = reinterpret_cast<const EngineBlock*>(engine);
  session.client = reinterpret_cast<ClientBlock*>(start);
  session.mapped_client_size = kRingOffset + 2 * welcome.ring_size;
  session.UseRing(
      RingWriter(&session.client->ring, start + kRingOffset, welcome.ring_size));
  session.seed = welcome.seed;
  return true;
}

bool ConnectTo(const Session& session, long fd) {
  const timeval timeout{.tv_sec = kHandshakeTimeoutSeconds, .tv_usec = 0};
  rt::Syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVTIMEO, rt::ToArg(&timeout),
              sizeof(timeout));
  rt::Syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, rt::ToArg(&timeout),
              sizeof(timeout));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  static_assert(sizeof(address.sun_path) == sizeof(session.socket_path));
  memcpy(address.sun_path, session.socket_path, sizeof(address.sun_path));
  if (rt::IsError(rt::Syscall(SYS_connect, fd, rt::ToArg(&address), sizeof(address))))
    return false;
  // A socket of another user's at this place: not to be trusted with our memory.
  ucred peer{};
  socklen_t length = sizeof(peer);
  return !rt::IsError(rt::Syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED,
                                  rt::ToArg(&peer), rt::ToArg(&length))) &&
         (peer.uid == 0 || static_cast<long>(peer.uid) == rt::Syscall(SYS_geteuid) ||
          static_cast<long>(peer.uid) == rt::Syscall(SYS_getuid));
}

}  // namespace

bool ReadSessionVariable(Session& session) {
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

bool Connect(Session& session, ClientOrigin origin) {
  const Socket socket(rt::Syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.fd() < 0 || !ConnectTo(session, socket.fd()))
    return false;
  const Hello hello{.magic = kHandshakeMagic,
                    .version = kWireVersion,
                    .origin = origin,
                    .tsc = rt::ReadTsc()};
  Welcome welcome{};
  int fds[2] = {-1, -1};
  const bool welcomed =
      SendAll(socket.fd(), hello) && ReceiveWelcome(socket.fd(), &welcome, fds);
  const Socket engine_file(fds[0]);
  const Socket client_file(fds[1]);
  return welcomed && MapSession(session, welcome, fds);
}

void Retire(Session& session) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (session.client != nullptr)
    Map(session.client, session.mapped_client_size, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (session.engine != nullptr)
    Map(const_cast<EngineBlock*>(session.engine), sizeof(EngineBlock), PROT_READ, flags,
        -1, 0);
}

void SendExecNotice(const Session& session, const ExecNotice& notice) {
  // An engine that is stopped or busy does not hold up the program.
  const Socket socket(
      rt::Syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.fd() >= 0 && ConnectTo(session, socket.fd()))
    rt::Syscall(SYS_sendto, socket.fd(), rt::ToArg(&notice), sizeof(notice),
                MSG_NOSIGNAL);
}

void Unmap(Session& session) {
  if (session.engine != nullptr)
    rt::Syscall(SYS_munmap, rt::ToArg(session.engine), sizeof(EngineBlock));
  if (session.client != nullptr)
    rt::Syscall(SYS_munmap, rt::ToArg(session.client),
                static_cast<long>(session.mapped_client_size));
  session.engine = nullptr;
  session.client = nullptr;
}

}  // namespace heapprofd
