// The client as a flat image that the engine places into a running process, and the block
// in it through which the two agree.
//
//   base ─▶ ┌──────────────────────────┐
//           │ AttachHeader, code       │ read-only, executable; filled through
//           │ relocated prologues      │ /proc/PID/mem, never writable in the target
//           ├──────────────────────────┤
//           │ AttachState, other data  │ readable, writable
//           │ zeroed memory            │
//           └──────────────────────────┘
//
// The mapping is never removed: a thread may be inside a hook at any time. It is found
// again by its header, so that the next engine can use it anew, or undo what an engine
// that was killed has left.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rt/resume_registers.h"

namespace heapprofd {

// Functions of an allocator that can be hooked: X(name of the hook, symbol).
#define HPD_HOOK_LIST(X)                                              \
  X(Malloc, "malloc")                                                 \
  X(Free, "free")                                                     \
  X(Calloc, "calloc")                                                 \
  X(Realloc, "realloc")                                               \
  X(Reallocarray, "reallocarray")                                     \
  X(Memalign, "memalign")                                             \
  X(AlignedAlloc, "aligned_alloc")                                    \
  X(PosixMemalign, "posix_memalign")                                  \
  X(Valloc, "valloc")                                                 \
  X(Pvalloc, "pvalloc")                                               \
  X(FreeSized, "free_sized")                                          \
  X(FreeAlignedSized, "free_aligned_sized")                           \
  X(Dlclose, "dlclose")                                               \
  X(New, "_Znwm")                                                     \
  X(NewArray, "_Znam")                                                \
  X(NewNothrow, "_ZnwmRKSt9nothrow_t")                                \
  X(NewArrayNothrow, "_ZnamRKSt9nothrow_t")                           \
  X(NewAligned, "_ZnwmSt11align_val_t")                               \
  X(NewArrayAligned, "_ZnamSt11align_val_t")                          \
  X(NewAlignedNothrow, "_ZnwmSt11align_val_tRKSt9nothrow_t")          \
  X(NewArrayAlignedNothrow, "_ZnamSt11align_val_tRKSt9nothrow_t")     \
  X(Delete, "_ZdlPv")                                                 \
  X(DeleteArray, "_ZdaPv")                                            \
  X(DeleteSized, "_ZdlPvm")                                           \
  X(DeleteArraySized, "_ZdaPvm")                                      \
  X(DeleteNothrow, "_ZdlPvRKSt9nothrow_t")                            \
  X(DeleteArrayNothrow, "_ZdaPvRKSt9nothrow_t")                       \
  X(DeleteAligned, "_ZdlPvSt11align_val_t")                           \
  X(DeleteArrayAligned, "_ZdaPvSt11align_val_t")                      \
  X(DeleteSizedAligned, "_ZdlPvmSt11align_val_t")                     \
  X(DeleteArraySizedAligned, "_ZdaPvmSt11align_val_t")                \
  X(DeleteAlignedNothrow, "_ZdlPvSt11align_val_tRKSt9nothrow_t")      \
  X(DeleteArrayAlignedNothrow, "_ZdaPvSt11align_val_tRKSt9nothrow_t") \
  X(Exit, "exit")                                                     \
  X(Mallocx, "mallocx")                                               \
  X(Rallocx, "rallocx")                                               \
  X(Xallocx, "xallocx")                                               \
  X(Dallocx, "dallocx")                                               \
  X(Sdallocx, "sdallocx")                                             \
  X(Sallocx, "sallocx") /* only called, by the hook of xallocx */

enum class Hook : uint8_t {
#define HPD_HOOK(name, symbol) k##name,
  HPD_HOOK_LIST(HPD_HOOK)
#undef HPD_HOOK
      kCount,
};

inline constexpr size_t kHookCount = static_cast<size_t>(Hook::kCount);

// A process can hold several allocators; each has hooks of its own.
inline constexpr size_t kMaxAllocators = 4;
inline constexpr size_t kMaxPatches = kMaxAllocators * kHookCount;
inline constexpr size_t kMaxPatchLength = 20;  // bytes
inline constexpr size_t kMaxKeptLength = 16;   // bytes, of one instruction
// Executable pages near an allocator that is more than 2 GiB away from the image.
inline constexpr size_t kMaxIslands = kMaxAllocators;
inline constexpr size_t kIslandSize = 4096;  // bytes

inline constexpr uint64_t kAttachMagic = 0x3731686361747461;  // "attach17"

// At the start of the image. All fields are offsets from the start, or sizes, in bytes.
struct AttachHeader {
  uint64_t magic;
  uint32_t code_size;    // executable part, whole pages
  uint32_t gates;        // room for relocated prologues, to the end of that part
  uint32_t image_size;   // what has contents
  uint32_t total_size;   // with zeroed memory, whole pages
  uint32_t state;        // AttachState
  uint32_t setup;        // where a thread starts that is to run the setup
  uint32_t setup_end;    // behind the code that puts its registers back
  uint32_t wiped;        // the memory that a forked child finds zeroed; its first word
                         // switches the hooks on, the second one is kHasOwnFiles
  uint32_t setup_stack;  // what the thread has for a stack meanwhile
  uint32_t setup_stack_end;  // 16-byte aligned
  uint32_t hooks[kMaxAllocators][kHookCount];
};

// Registers with which the thread that ran the setup goes on when the engine does not put
// it back.
using rt::ResumeRegisters;

// Enough to undo one patch, whoever made it. Records stay, so that the next session uses
// their gates again.
struct PatchRecord {
  uint64_t address;  // behind the function's first bytes, which stay as they are
  uint64_t gate;   // the function's relocated first instructions, then a jump behind them
  uint8_t length;  // bytes that are replaced, at most kMaxPatchLength
  uint8_t kept;    // bytes before `address`, from the function's begin
  uint8_t copied_at;  // where in the gate the copy of what is replaced begins
  uint8_t reserved;
  uint32_t hook;  // number of the hook that `written` leads to, from 1; 0: none yet
  uint8_t original[kMaxPatchLength];  // as the file has them, like `begin`
  uint8_t written[kMaxPatchLength];
  uint8_t begin[kMaxKeptLength];
};

static_assert(sizeof(PatchRecord) == 80);

enum class SetupStatus : uint32_t {
  kIdle = 0,
  kRunning = 1,
  kDone = 3,
  kFailed = 4,  // `error` says why; nothing is left behind
};

enum class SetupStep : uint32_t {
  kNone = 0,
  kWipeOnFork = 1,
  kMakeSockets = 2,  // over which the engine sends the two memory files
  kMapFile = 3,
  kMapIsland = 4,
  kReceiveFiles = 5,
};

// What becomes of the children that the process forks.
enum class ChildrenMode : uint16_t {
  kIgnored = 0,
  kFollowed =
      1,  // they count in their parent's block and wait for a session of their own
};

// In a forked child whose hooks count already, the setup only makes and maps the files;
// the child begins its session by itself when this word says that the engine is ready.
inline constexpr uint32_t kHasOwnFiles = 1;
inline constexpr uint64_t kOwnFilesOffset = 4;  // bytes, from AttachHeader::wiped

// Values that the setup works with. Written by the engine before a thread runs it.
struct SetupRequest {
  uint64_t signal_mask;  // of the thread; it runs the setup with all signals blocked
  uint64_t ring_size;    // bytes, a power of two
  uint64_t seed;         // never 0
  uint64_t stale_ticks;  // without a heartbeat for so long the engine counts as lost
  uint64_t main_thread;  // thread pointer of the main thread; 0: unknown
  uint64_t stack_end;    // __libc_stack_end, or where the kernel began; 0: unknown
  uint64_t islands[kMaxIslands];  // addresses of those to be mapped, 0: none
  uint32_t pid;                   // as the process itself sees it
  uint32_t tid_offset;            // of the thread id in a thread's control block
  uint32_t thread_block_size;     // bytes; 0: unknown
  ChildrenMode children;
  uint16_t keeps_counting;  // 1: a forked child that counts already (kHasOwnFiles)
  uint64_t stack_end_at;    // address of __libc_stack_end, while its value is not known
  uint64_t hold_ticks;      // when all is done, the thread waits for so long to be put
                            // back, then it goes back by itself
};

struct SetupResult {
  uint32_t status;    // SetupStatus
  uint32_t step;      // SetupStep that failed
  int32_t error;      // errno
  int32_t engine_fd;  // while it is open, else -1
  int32_t client_fd;
  uint32_t reserved;
  uint64_t engine_block;  // address
  uint64_t client_block;
  uint64_t ring_size;  // of the mapping at client_block
};

// How the setup gets its two memory files: it makes a pair of sockets, the engine takes
// the second one and sends the files, the setup receives them from the first one.
// `message` is made by the engine and leads to the other fields.
struct FileTransfer {
  int32_t sockets[2];  // -1: not open
  msghdr message;
  iovec part;
  uint64_t byte;
  alignas(8) unsigned char control[CMSG_SPACE(2 * sizeof(int32_t))];
};

// Descriptors in a message that has been received: the engine's file and the client's; -1
// where there is none.
inline void FindReceived(const FileTransfer& transfer, int32_t* files) {
  cmsghdr header;
  memcpy(&header, transfer.control, sizeof(header));
  const size_t bytes = transfer.message.msg_controllen >= sizeof(header) &&
                               header.cmsg_level == SOL_SOCKET &&
                               header.cmsg_type == SCM_RIGHTS
                           ? header.cmsg_len - CMSG_LEN(0)
                           : 0;
  for (size_t i = 0; i < 2; ++i) {
    files[i] = -1;
    if (bytes >= (i + 1) * sizeof(int32_t))
      memcpy(files + i, transfer.control + CMSG_LEN(0) + i * sizeof(int32_t),
             sizeof(int32_t));
  }
}

struct AttachState {
  ResumeRegisters resume;
  SetupRequest request;
  SetupResult result;
  uint64_t originals[kMaxAllocators][kHookCount];  // where each hooked function goes on
  uint64_t gates_used;                             // bytes of the room for gates
  uint64_t islands[kMaxIslands];       // addresses of those that exist, 0: none
  uint64_t islands_used[kMaxIslands];  // bytes
  uint32_t patch_count;
  // 1: no thread is in the setup, or can come there. 0: one may be, its engine was
  // killed.
  uint32_t settled;
  PatchRecord patches[kMaxPatches];
  FileTransfer transfer;
};

}  // namespace heapprofd
