#include "attach/setup_calls.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "attach/client_image.h"
#include "attach/refusals.h"
#include "attach/registers.h"
#include "attach/thread/guided_thread.h"
#include "base/files/passed_fds.h"
#include "rt/syscall.h"
#include "wire/client_tables.h"
#include "wire/shared_memory.h"

namespace heapprofd {
namespace {

constexpr uint64_t kNoFile = ~uint64_t{0};

uint64_t Argument(int value) {
  return static_cast<uint64_t>(static_cast<int64_t>(value));
}

OurCall MmapCall(uint64_t address,
                 uint64_t size,
                 int protection,
                 int flags,
                 uint64_t fd = kNoFile,
                 uint64_t offset = 0) {
  return {
      .number = SYS_mmap,
      .arguments = {address, size, Argument(protection), Argument(flags), fd, offset}};
}

OurCall CloseCall(int fd) {
  return {.number = SYS_close, .arguments = {Argument(fd)}};
}

// Memory at another place than it was to be: something lies there.
int ErrorOf(int64_t mapped) {
  return rt::IsError(static_cast<long>(mapped)) ? static_cast<int>(-mapped) : EEXIST;
}

// The calls of attach/*/stub.
Status MapByStub(pid_t pid, uint64_t base, GuidedThread* guided) {
  const AttachHeader& header = ClientHeader();
  HPD_TRY_ASSIGN(const int64_t room,
                 guided->Expect(MmapCall(
                     base, header.total_size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE)));
  if (static_cast<uint64_t>(room) != base)
    return MemoryRefused(pid, ErrorOf(room), header.total_size);
  HPD_TRY_ASSIGN(const int64_t code,
                 guided->Expect(MmapCall(base, header.code_size, PROT_READ | PROT_EXEC,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED)));
  return static_cast<uint64_t>(code) == base
             ? Status()
             : MemoryRefused(pid, ErrorOf(code), header.total_size);
}

// A descriptor of the process whose thread this is. Only since Linux 6.9 a thread can be
// named that is not the first of its process, which may have ended.
ScopedFd TakeDescriptor(pid_t pid, pid_t tid, int fd) {
  constexpr unsigned kOfThread = O_EXCL;  // PIDFD_THREAD
  ScopedFd process(static_cast<int>(syscall(SYS_pidfd_open, tid, kOfThread)));
  if (!process.valid())
    process.reset(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!process.valid())
    return ScopedFd();
  return ScopedFd(static_cast<int>(syscall(SYS_pidfd_getfd, process.get(), fd, 0)));
}

// The process is free to put any socket there: over one that is not of its own making, our
// message would come from us, with our rights.
bool IsOwnPair(int socket, pid_t pid) {
  int domain = 0;
  int type = 0;
  ucred peer{};
  socklen_t size = sizeof(domain);
  if (getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0)
    return false;
  size = sizeof(type);
  if (getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) != 0)
    return false;
  size = sizeof(peer);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         domain == AF_UNIX && type == SOCK_SEQPACKET && peer.pid == pid;
}

// What the setup does with memory of its own, most of it only where it was not done in an
// earlier session: advice, and room that is not executable and lies where the kernel
// chooses.
bool IsOfOwnMemory(const OurCall& call) {
  constexpr uint64_t kMostRoom = uint64_t{32} << 20;  // bytes
  if (call.number == SYS_madvise)
    return call.arguments[2] == MADV_WIPEONFORK || call.arguments[2] == MADV_DONTNEED ||
           call.arguments[2] == MADV_DONTDUMP || call.arguments[2] == MADV_DONTFORK;
  constexpr auto kAnonymous = static_cast<uint64_t>(MAP_PRIVATE | MAP_ANONYMOUS);
  const auto optional = static_cast<uint64_t>(MAP_NORESERVE);
  return call.number == SYS_mmap && call.arguments[0] == 0 &&
         call.arguments[1] <= kMostRoom &&
         call.arguments[2] == static_cast<uint64_t>(PROT_READ | PROT_WRITE) &&
         (call.arguments[3] & ~optional) == kAnonymous;
}

// The calls of client/image/attach_setup.cc, in its order.
class SetupCalls {
 public:
  SetupCalls(const RemoteProcess& process,
             uint64_t base,
             const SharedMemory& memory,
             const SetupRequest& request,
             const SetupResult& left,
             TracedThread* thread,
             GuidedThread* guided)
      : process_(process),
        base_(base),
        memory_(memory),
        request_(request),
        left_(left),
        thread_(thread),
        guided_(guided) {}

  // What the setup receives the files with; before it begins.
  bool WriteTransfer() const;

  // Until the setup has ended, well or not, and has closed what it had opened.
  Status Run();

 private:
  pid_t pid() const { return process_.pid(); }

  uint64_t TransferAddress() const {
    return base_ + ClientHeader().state + offsetof(AttachState, transfer);
  }

  uint64_t ResultAddress() const {
    return base_ + ClientHeader().state + offsetof(AttachState, result);
  }

  // False: the setup has given up; failure_ says why.
  Result<bool> Call(const char* what, const OurCall& call, int64_t* result = nullptr);
  Result<bool> Prepare();
  Result<bool> Transfer();
  Result<bool> SendFiles();
  Result<bool> Map();
  Result<bool> MapRing();
  Status Close();

  const RemoteProcess& process_;
  const uint64_t base_;
  const SharedMemory& memory_;
  const SetupRequest& request_;
  const SetupResult left_;
  TracedThread* thread_;
  GuidedThread* guided_;
  std::array<int32_t, 2> sockets_{-1, -1};
  std::array<int32_t, 2> files_{-1, -1};
  Status failure_;
};

bool SetupCalls::WriteTransfer() const {
  const uint64_t address = TransferAddress();
  const auto pointer = [address](size_t offset) {
    return reinterpret_cast<void*>(address + offset);  // NOLINT: of the process
  };
  FileTransfer transfer{};
  transfer.sockets[0] = transfer.sockets[1] = -1;
  transfer.message.msg_iov = static_cast<iovec*>(pointer(offsetof(FileTransfer, part)));
  transfer.message.msg_iovlen = 1;
  transfer.message.msg_control = pointer(offsetof(FileTransfer, control));
  transfer.message.msg_controllen = sizeof(transfer.control);
  transfer.part = {.iov_base = pointer(offsetof(FileTransfer, byte)), .iov_len = 1};
  return process_.WriteObject(address, transfer);
}

Result<bool> SetupCalls::Call(const char* what, const OurCall& call, int64_t* result) {
  HPD_TRY_ASSIGN(const int64_t returned, guided_->Expect(call));
  if (result != nullptr)
    *result = returned;
  if (!rt::IsError(static_cast<long>(returned)))
    return true;
  if (failure_.ok() && call.number == SYS_mmap &&
      (returned == -EAGAIN || returned == -ENOMEM))
    failure_ = MemoryRefused(pid(), static_cast<int>(-returned),
                             sizeof(EngineBlock) + kRingOffset + 2 * request_.ring_size);
  if (failure_.ok())
    failure_ = CannotAttach(pid(), std::string(what) + ": " +
                                       strerror(static_cast<int>(-returned)) +
                                       "; check its limits on memory and open files");
  return false;
}

Result<bool> SetupCalls::Prepare() {
  if (request_.keeps_counting != 0)
    return true;
  for (const uint64_t island : request_.islands) {
    if (island == 0)
      continue;
    int64_t mapped = 0;
    HPD_TRY_ASSIGN(const bool is_done,
                   Call("memory near its allocator could not be mapped",
                        MmapCall(island, kIslandSize, PROT_READ | PROT_EXEC,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE),
                        &mapped));
    if (!is_done || static_cast<uint64_t>(mapped) != island)
      return false;
  }
  return true;
}

Result<bool> SetupCalls::Transfer() {
  const uint64_t transfer = TransferAddress();
  HPD_TRY_ASSIGN(const bool is_made,
                 Call("a pair of sockets could not be made in it",
                      {.number = SYS_socketpair,
                       .arguments = {AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
                                     transfer + offsetof(FileTransfer, sockets)}}));
  if (!is_made)
    return false;
  if (!process_.ReadObject(transfer + offsetof(FileTransfer, sockets), &sockets_))
    return SeizeError(pid(), ESRCH);
  HPD_TRY_ASSIGN(const bool is_sent, SendFiles());
  HPD_TRY_ASSIGN(const bool is_received,
                 Call("the memory files did not arrive in it",
                      {.number = SYS_recvmsg,
                       .arguments = {Argument(sockets_[0]),
                                     transfer + offsetof(FileTransfer, message),
                                     MSG_CMSG_CLOEXEC | MSG_DONTWAIT}}));
  FileTransfer received{};
  if (!process_.ReadObject(transfer, &received))
    return SeizeError(pid(), ESRCH);
  if (is_received)
    FindReceived(received, files_.data());
  if (is_received && files_[1] < 0 && failure_.ok())
    failure_ = CannotAttach(pid(),
                            "it has no descriptors left for the memory files; raise its "
                            "limit on open files");
  return is_sent && is_received && files_[1] >= 0;
}

// False: the setup will see that nothing has come.
Result<bool> SetupCalls::SendFiles() {
  const ScopedFd socket = TakeDescriptor(pid(), thread_->tid(), sockets_[1]);
  if (!socket.valid()) {
    const int error = errno;
    failure_ = CannotAttach(
        pid(), std::string("a descriptor of it cannot be taken (pidfd_getfd): ") +
                   strerror(error) +
                   (error == ENOSYS ? "; that needs Linux 5.6"
                                    : "; allow that call to the profiler"));
    return false;
  }
  if (!IsOwnPair(socket.get(), pid())) {
    failure_ = CannotAttach(pid(),
                            "it has put something else in the place of the profiler's "
                            "sockets; look at what that process is");
    return false;
  }
  if (SendWithFds(socket.get(), "f", {memory_.engine_fd(), memory_.client_fd()},
                  MSG_DONTWAIT | MSG_NOSIGNAL)
          .value_or(0) == 1)
    return true;
  failure_ = CannotAttach(pid(), std::string("the memory files cannot be sent to it: ") +
                                     strerror(errno) + "; try again later");
  return false;
}

Result<bool> SetupCalls::Map() {
  const uint64_t before = left_.engine_block;
  HPD_TRY_ASSIGN(const bool is_mapped,
                 Call("memory could not be mapped in it",
                      MmapCall(before, sizeof(EngineBlock), PROT_READ,
                               before != 0 ? MAP_SHARED | MAP_FIXED : MAP_SHARED,
                               Argument(files_[0]))));
  if (!is_mapped)
    return false;
  return MapRing();
}

Result<bool> SetupCalls::MapRing() {
  constexpr const char* kWhat = "memory for the ring could not be mapped in it";
  const uint64_t ring = request_.ring_size;
  uint64_t block = left_.client_block;
  if (block == 0 || left_.ring_size != ring) {
    int64_t reserved = 0;
    HPD_TRY_ASSIGN(const bool is_reserved,
                   Call(kWhat,
                        MmapCall(0, kClientMapped + 2 * ring, PROT_NONE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE),
                        &reserved));
    if (!is_reserved)
      return false;
    block = static_cast<uint64_t>(reserved);
  }

  struct Part {
    uint64_t address;
    uint64_t size;
    uint64_t offset;
  };

  const Part parts[] = {{block, kClientMapped, 0},
                        {block + kClientMapped, ring, kRingOffset},
                        {block + kClientMapped + ring, ring, kRingOffset}};
  for (const Part& part : parts) {
    HPD_TRY_ASSIGN(
        const bool is_mapped,
        Call(kWhat, MmapCall(part.address, part.size, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_FIXED, Argument(files_[1]), part.offset)));
    if (!is_mapped)
      return false;
  }
  return true;
}

Status SetupCalls::Close() {
  for (const int32_t fd : {sockets_[0], sockets_[1], files_[0], files_[1]}) {
    if (fd >= 0)
      HPD_TRY(guided_->Expect(CloseCall(fd)).status());
  }
  return {};
}

Status SetupCalls::Run() {
  using Step = Result<bool> (SetupCalls::*)();
  for (const Step step :
       {&SetupCalls::Prepare, &SetupCalls::Transfer, &SetupCalls::Map}) {
    HPD_TRY_ASSIGN(const bool is_done, (this->*step)());
    if (!is_done)
      break;
  }
  HPD_TRY(Close());
  SetupResult result{};
  HPD_TRY(guided_->RunUntil([&] {
    return process_.ReadObject(ResultAddress(), &result) &&
           (result.status == static_cast<uint32_t>(SetupStatus::kDone) ||
            result.status == static_cast<uint32_t>(SetupStatus::kFailed));
  }));
  if (!failure_.ok())
    return failure_;
  return result.status == static_cast<uint32_t>(SetupStatus::kDone)
             ? Status()
             : CannotAttach(pid(), "step " + std::to_string(result.step) +
                                       " of its setup failed: " + strerror(result.error) +
                                       "; try again");
}

}  // namespace

Status MapImage(const RemoteProcess& process,
                const CodeCave& cave,
                uint64_t base,
                uint64_t hold_ticks,
                TracedThread* thread) {
  const pid_t pid = process.pid();
  const AttachHeader& header = ClientHeader();
  HPD_TRY_ASSIGN(GuidedThread guided, GuidedThread::Create(pid, thread));
  const std::vector<uint8_t> stub = MakeStub({.base = base,
                                              .total_size = header.total_size,
                                              .code_size = header.code_size,
                                              .hold_ticks = hold_ticks,
                                              .signal_mask = guided.signal_mask()},
                                             thread->context().ResumeState());
  if (!process.Write(cave.address, stub.data(), stub.size()))
    return CannotWriteCode(pid);
  HPD_TRY(guided.LeadTo(cave.address, StackPointer(thread->context().registers()),
                        {.begin = cave.address, .end = cave.address + stub.size()}));
  Status mapped = MapByStub(pid, base, &guided);
  // If it does not come back, the next attempt finds the stub and heals the cave.
  Status back = guided.PutBack();
  if (back.ok())
    process.Write(cave.address, cave.contents.data(), cave.contents.size());
  return mapped.ok() ? back : mapped;
}

Status RunSetup(const RemoteProcess& process,
                uint64_t base,
                const SharedMemory& memory,
                const SetupRequest& request,
                SetupResult* result,
                TracedThread* thread) {
  const pid_t pid = process.pid();
  const AttachHeader& header = ClientHeader();
  const uint64_t state = base + header.state;
  HPD_TRY_ASSIGN(GuidedThread guided, GuidedThread::Create(pid, thread));
  constexpr int kMostBetween = 32;
  guided.AllowBetween(IsOfOwnMemory, kMostBetween);
  SetupCalls calls(process, base, memory, request, *result, thread, &guided);
  if (!process.WriteObject(state + offsetof(AttachState, resume),
                           thread->context().ResumeState()) ||
      !calls.WriteTransfer() ||
      !process.WriteObject(state + offsetof(AttachState, request.signal_mask),
                           guided.signal_mask()))
    return CannotWriteMemory(pid);
  HPD_TRY(guided.LeadTo(base + header.setup, base + header.setup_stack_end,
                        {.begin = base, .end = base + header.code_size}));
  Status done = calls.Run();
  Status back = guided.PutBack();
  HPD_TRY(std::move(done));
  HPD_TRY(std::move(back));
  return process.ReadObject(state + offsetof(AttachState, result), result)
             ? Status()
             : SeizeError(pid, ESRCH);
}

}  // namespace heapprofd
