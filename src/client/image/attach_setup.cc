// Begins the attached client's session. Runs once per session on a thread of the target
// that the engine has borrowed and then puts back. When it does not, because it was
// killed meanwhile, the thread goes back by itself.
//
// The engine lets no other system call through than it expects: attach/setup_calls.cc has
// the same calls in the same order.
//
// Compiled without floating point and vector registers: those of the thread stay as they
// are.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>

#include "client/confinement.h"
#include "client/engine_link/handshake_client.h"
#include "client/engine_link/service_client.h"
#include "client/image/attach_image.h"
#include "client/image/flat_threads.h"
#include "client/image/setup_entry.h"
#include "client/own_memory.h"
#include "client/session.h"
#include "client/spare_memory.h"
#include "rt/syscall.h"
#include "wire/small_memory.h"

heapprofd::AttachState hpd_attach_state;

// What stack.cc looks for in the loader and libc of the process; the engine has found it.
extern "C" {
void* __libc_stack_end;

extern struct ThreadDbField {
  uint32_t bits;
  uint32_t count;
  uint32_t offset;
} _thread_db_pthread_tid;
struct ThreadDbField _thread_db_pthread_tid;
extern uint32_t _thread_db_sizeof_pthread;
uint32_t _thread_db_sizeof_pthread;

// Of attach_image.lds: the image's data, whole pages.
// NOLINTNEXTLINE(readability-identifier-naming)
extern const char HpdCodeEnd[] __attribute__((visibility("hidden")));
// NOLINTNEXTLINE(readability-identifier-naming)
extern const char HpdImageEnd[] __attribute__((visibility("hidden")));
}

namespace heapprofd {

FlatThread g_flat_threads[1u << kFlatThreadBits];

namespace {

constexpr unsigned kMaxProbes = 64;

FlatThread g_full_table_thread;

}  // namespace

FlatThread& FindFlatThread(uint64_t thread_pointer) {
  constexpr uint64_t kMask = (1u << kFlatThreadBits) - 1;
  for (uint64_t i = 0; i < kMaxProbes; ++i) {
    FlatThread& thread = g_flat_threads[(FlatThreadIndex(thread_pointer) + i) & kMask];
    uint64_t owner = thread.thread_pointer.load(std::memory_order_acquire);
    if (owner == 0 && thread.thread_pointer.compare_exchange_strong(
                          owner, thread_pointer, std::memory_order_acq_rel)) {
      thread.slot = FirstSlot();
      return thread;
    }
    if (owner == thread_pointer)
      return thread;
  }
  g_full_table_thread.slot = OrphanSlot();
  g_full_table_thread.outer_hook = 0;
  return g_full_table_thread;
}

// An attached client is begun by HpdSetup below, never by a hook, and has no socket.
const bool g_hooks_malloc = true;

ConnectResult Connect(ClientSession&, ClientOrigin) {
  return ConnectResult::kFailed;
}

void Retire(ClientSession&) {}

void RetireClient(const SessionMemory&) {}

void Unmap(SessionMemory*) {}

constinit ServicePlace g_service_places[kServicePlaces];

namespace {

bool Fail(SetupStep step, long result) {
  hpd_attach_state.result.step = static_cast<uint32_t>(step);
  hpd_attach_state.result.error = static_cast<int32_t>(-result);
  return false;
}

void Store(uint32_t& field, uint32_t value) {
  __atomic_store_n(&field, value, __ATOMIC_RELEASE);
}

long MapShared(long address, uint64_t size, int protection, long fd, uint64_t offset) {
  const int flags = address != 0 ? MAP_SHARED | MAP_FIXED : MAP_SHARED;
  return rt::Syscall(SYS_mmap, address, static_cast<long>(size), protection, flags, fd,
                     static_cast<long>(offset));
}

void Forget(FlatThread& thread) {
  thread.outer_hook = 0;
  thread.entered_at = 0;
  thread.own_slot = FirstSlot();
  thread.slot = FirstSlot();
}

bool PrepareOwnMemory() {
  LeaveOutOfCores(HpdCodeEnd, static_cast<uint64_t>(HpdImageEnd - HpdCodeEnd));
  const long advised =
      rt::Syscall(SYS_madvise, rt::ToArg(&g_wiped), sizeof(g_wiped), MADV_WIPEONFORK);
  if (rt::IsError(advised))
    return Fail(SetupStep::kWipeOnFork, advised);
  // What an earlier session left.
  rt::Syscall(SYS_madvise, rt::ToArg(&g_wiped), sizeof(g_wiped), MADV_DONTNEED);
  for (std::atomic<uint64_t>& hash : g_session.known_stacks) {
    if (hash.load(std::memory_order_relaxed) != 0)
      hash.store(0, std::memory_order_relaxed);
  }
  g_session.frames_end.store(0, std::memory_order_relaxed);
  if (std::byte* memory = g_session.filter_memory.load())
    rt::Syscall(SYS_madvise, rt::ToArg(memory), SampledFilter::kMoreBytes, MADV_DONTNEED);
  ForgetMemos();
  for (FlatThread& thread : g_flat_threads) {
    if (thread.thread_pointer.load(std::memory_order_relaxed) != 0)
      Forget(thread);
  }
  return true;
}

// What the hooks cannot map when they need it. They do without what there is no room for.
void MapSpareMemory() {
  constexpr uint64_t kMemoBytes = (kMemos - kOwnMemos) * sizeof(StackMemo);
  if (hpd_attach_state.request.ring_size <= kSmallRing ||
      g_session.filter_memory.load() != nullptr)
    return;
  std::byte* memory = MapOwnMemory(SampledFilter::kMoreBytes + kMemoBytes, OnFork::kKept);
  if (memory == nullptr)
    return;
  auto* memos = reinterpret_cast<StackMemo*>(memory + SampledFilter::kMoreBytes);
  const long advised = rt::Syscall(SYS_madvise, rt::ToArg(memory),
                                   SampledFilter::kMoreBytes, MADV_WIPEONFORK);
  if (!rt::IsError(advised))
    g_session.filter_memory.store(memory);
  g_session.more_memos.store(memos, std::memory_order_release);
}

bool MapIslands() {
  const SetupRequest& request = hpd_attach_state.request;
  for (const uint64_t island : request.islands) {
    if (island == 0)
      continue;
    const long mapped = rt::Syscall(
        SYS_mmap, static_cast<long>(island), kIslandSize, PROT_READ | PROT_EXEC,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (mapped != static_cast<long>(island))
      return Fail(SetupStep::kMapIsland, rt::IsError(mapped) ? mapped : -1);
  }
  return true;
}

// The header and the ring, and the ring once more behind itself. Over the last session's
// ring if that has the same size: a hook that is still on its way out of that session
// then finds memory where it expects it. Never unmapped for the same reason.
bool MapClientBlock(long fd) {
  SetupResult& result = hpd_attach_state.result;
  const uint64_t ring_size = hpd_attach_state.request.ring_size;
  const uint64_t total = kClientMapped + 2 * ring_size;
  long base = static_cast<long>(result.client_block);
  if (base == 0 || result.ring_size != ring_size) {
    base = rt::Syscall(SYS_mmap, 0, static_cast<long>(total), PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (rt::IsError(base))
      return Fail(SetupStep::kMapFile, base);
  }
  const int protection = PROT_READ | PROT_WRITE;
  const long header = MapShared(base, kClientMapped, protection, fd, 0);
  if (rt::IsError(header))
    return Fail(SetupStep::kMapFile, header);
  for (const uint64_t place : {kClientMapped, kClientMapped + ring_size}) {
    const long ring = MapShared(base + static_cast<long>(place), ring_size, protection,
                                fd, kRingOffset);
    if (rt::IsError(ring))
      return Fail(SetupStep::kMapFile, ring);
  }
  LeaveOutOfCores(reinterpret_cast<const void*>(base), total);
  result.client_block = static_cast<uint64_t>(base);
  result.ring_size = ring_size;
  return true;
}

// The engine stops us behind the first call and sends the files; if it is gone, there is
// nothing to be received, which is not waited for.
bool ReceiveFiles() {
  SetupResult& result = hpd_attach_state.result;
  FileTransfer& transfer = hpd_attach_state.transfer;
  const long made = rt::Syscall(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
                                rt::ToArg(transfer.sockets));
  if (rt::IsError(made))
    return Fail(SetupStep::kMakeSockets, made);
  const long received =
      rt::Syscall(SYS_recvmsg, transfer.sockets[0], rt::ToArg(&transfer.message),
                  MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (rt::IsError(received))
    return Fail(SetupStep::kReceiveFiles, received);
  int32_t files[2];
  FindReceived(transfer, files);
  result.engine_fd = files[0];
  result.client_fd = files[1];
  return files[1] >= 0 ? true : Fail(SetupStep::kReceiveFiles, -EMFILE);
}

bool MapFiles() {
  SetupResult& result = hpd_attach_state.result;
  const long engine = MapShared(static_cast<long>(result.engine_block),
                                sizeof(EngineBlock), PROT_READ, result.engine_fd, 0);
  if (rt::IsError(engine))
    return Fail(SetupStep::kMapFile, engine);
  LeaveOutOfCores(reinterpret_cast<const void*>(engine), sizeof(EngineBlock));
  result.engine_block = static_cast<uint64_t>(engine);
  return MapClientBlock(result.client_fd);
}

void CloseFiles() {
  SetupResult& result = hpd_attach_state.result;
  int32_t* const sockets = hpd_attach_state.transfer.sockets;
  for (int32_t* fd : {sockets, sockets + 1, &result.engine_fd, &result.client_fd}) {
    if (*fd >= 0)
      rt::Syscall(SYS_close, *fd);
    *fd = -1;
  }
}

void DiscoverLayout(uint64_t main_thread, uint64_t stack_end) {
  __libc_stack_end = reinterpret_cast<void*>(stack_end);
  if (main_thread != 0 && stack_end != 0)
    g_session.layout.Discover(main_thread,
                              static_cast<int>(hpd_attach_state.request.pid));
}

// Of this session and of the one before, which a late hook may still look at.
SessionMemory g_memories[2];

void BeginSession() {
  const SetupRequest& request = hpd_attach_state.request;
  const SetupResult& result = hpd_attach_state.result;
  auto* client = reinterpret_cast<ClientBlock*>(result.client_block);
  SessionMemory* memory = g_session.memory.load(std::memory_order_relaxed) == g_memories
                              ? g_memories + 1
                              : g_memories;
  *memory = {.engine = reinterpret_cast<const EngineBlock*>(result.engine_block),
             .client = client,
             .client_size = kClientMapped + 2 * request.ring_size,
             .seed = request.seed,
             .ring = RingWriter(&client->ring,
                                reinterpret_cast<std::byte*>(client) + kClientMapped,
                                request.ring_size),
             .tables = nullptr};
  g_session.memory.store(memory, std::memory_order_release);
  g_session.only_pid = static_cast<int>(request.pid);
  _thread_db_pthread_tid.offset = request.tid_offset;
  _thread_db_sizeof_pthread = request.thread_block_size;
  g_session.layout = ThreadLayout();
  DiscoverLayout(request.main_thread, request.stack_end);
  ExpectHeartbeat();
}

}  // namespace

void ForgetThreads() {
  const FlatThread& own = ThisThread();
  for (FlatThread& thread : g_flat_threads) {
    if (&thread != &own && thread.thread_pointer.load(std::memory_order_relaxed) != 0)
      Forget(thread);
  }
}

bool FollowsChildren() {
  return hpd_attach_state.request.children == ChildrenMode::kFollowed;
}

// Nobody waits for them: the child may be under a seccomp filter by now, which its parent
// was not. Until they are there it counts, and takes no samples.
bool HasOwnFiles() {
  return g_wiped.own_files.load(std::memory_order_acquire) == kHasOwnFiles;
}

// Its threads have the stacks that they had in the parent.
void BeginOwnSession() {
  const ThreadLayout layout = g_session.layout;
  BeginSession();
  g_session.layout = layout;
}

HPD_COLD void DiscoverLayoutLate() {
  uint64_t& at = hpd_attach_state.request.stack_end_at;
  const auto* stack_end = reinterpret_cast<const volatile uint64_t*>(at);
  at = 0;
  DiscoverLayout(rt::ThreadPointer(), *stack_end);
}

extern "C" __attribute__((visibility("hidden"), used)) void HpdSetup() {
  SetupResult& result = hpd_attach_state.result;
  Store(result.status, static_cast<uint32_t>(SetupStatus::kRunning));
  result.engine_fd = -1;
  result.client_fd = -1;
  hpd_attach_state.transfer.sockets[0] = -1;
  hpd_attach_state.transfer.sockets[1] = -1;
  const bool counts_already = hpd_attach_state.request.keeps_counting != 0;
  const bool is_prepared = counts_already || (PrepareOwnMemory() && MapIslands());
  if (is_prepared && !counts_already)
    MapSpareMemory();
  const bool is_ready = is_prepared && ReceiveFiles() && MapFiles();
  CloseFiles();
  if (is_ready && !counts_already) {
    BeginSession();
    // The wiped word still says no; the engine sets it when the hooks are in place.
    g_session.state.store(SessionState::kActive, std::memory_order_release);
  }
  Store(result.status,
        static_cast<uint32_t>(is_ready ? SetupStatus::kDone : SetupStatus::kFailed));
}

}  // namespace heapprofd

// Not the thread's own stack: what lies below that may be a guard page, or somebody
// else's memory.
extern "C" {
alignas(16) __attribute__((visibility("hidden"),
                           used)) char hpd_setup_stack[heapprofd::kSetupStackSize];
}
