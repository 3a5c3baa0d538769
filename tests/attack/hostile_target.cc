// Programs that root records, and that try to use what root does to them for that.
//
//   hostile_target memory DIRECTORY      gets hold of the engine's memory and writes there
//   hostile_target WAY DIRECTORY         under a seccomp filter that refuses mkdir: makes
//                                        the borrowed thread run its own code, which makes
//                                        the directory. WAY: stack, code, registers,
//                                        process (a process that shares memory does it)
//   hostile_target sandbox PROGRAM DIRECTORY COUNT   runs that program so often, filtered
//
// "memory" says how many files it has mapped writable; all say "ready" when root may come,
// and go on allocating until their input ends. What has worked is there: DIRECTORY.
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "wire/attached_client.h"
#include "wire/shared_memory.h"

namespace {

using heapprofd::AttachHeader;
using heapprofd::AttachState;

char g_directory[4096];
std::atomic<int> g_mapped{0};
int g_maps = -1;
int g_memory = -1;

[[gnu::always_inline]] inline long Call(long number, long a = 0, long b = 0) {
#if defined(__x86_64__)
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b)
               : "rcx", "r11", "memory");
  return result;
#else
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = -100;  // AT_FDCWD
  register long x1 asm("x1") = a;
  register long x2 asm("x2") = b;
  asm volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
  return x0;
#endif
}

#if defined(__x86_64__)
constexpr long kMakeDirectory = SYS_mkdir;
#else
constexpr long kMakeDirectory = SYS_mkdirat;
#endif

// Where a thread comes that was led astray.
[[noreturn]] void Escape() {
  Call(kMakeDirectory, reinterpret_cast<long>(g_directory), 0700);
  while (true) {
  }
}

void RefuseDirectories() {
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(kMakeDirectory), 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mkdirat, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = 5, .filter = steps};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0 ||
      mkdir(g_directory, 0700) == 0)
    abort();
}

// Executable memory of no file that is not the vdso's: the client's image. 0: not yet.
uint64_t FindImage() {
  static char text[1 << 20];
  const ssize_t length = pread(g_maps, text, sizeof(text) - 1, 0);
  text[length > 0 ? length : 0] = 0;
  for (char* line = strtok(text, "\n"); line != nullptr; line = strtok(nullptr, "\n")) {
    uint64_t low = 0;
    uint64_t high = 0;
    char rights[8] = "";
    unsigned long inode = 1;
    char name[64] = "";
    sscanf(line, "%lx-%lx %7s %*x %*s %lu %63s", &low, &high, rights, &inode, name);
    if (strcmp(rights, "r-xp") == 0 && inode == 0 && name[0] == 0)
      return low;
  }
  return 0;
}

void WriteCode(uint64_t address) {
#if defined(__x86_64__)
  uint8_t jump[] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};  // mov, jmp *%rax
  const auto target = reinterpret_cast<uint64_t>(&Escape);
  memcpy(jump + 2, &target, sizeof(target));
  (void)!pwrite(g_memory, jump, sizeof(jump), static_cast<off_t>(address));
#else
  (void)address;
#endif
}

void LeadAstray(const std::string& way) {
  uint64_t base = 0;
  while (base == 0)
    base = FindImage();
  AttachHeader header{};
  while (header.magic != heapprofd::kAttachMagic)
    memcpy(&header, reinterpret_cast<const void*>(base), sizeof(header));
  const auto escape = reinterpret_cast<uint64_t>(&Escape);
  auto* const stack = reinterpret_cast<volatile uint64_t*>(base + header.setup_stack_end);
  auto* const resume = reinterpret_cast<volatile uint64_t*>(base + header.state);
  while (true) {
    if (way == "code") {
      WriteCode(base + header.setup);
    } else if (way == "registers") {
      for (size_t i = 0; i < sizeof(heapprofd::ResumeRegisters) / 8; ++i)
        resume[i] = escape;
    } else {
      stack[-1] = escape;
      stack[-2] = escape;
    }
  }
}

// Maps each memory file of the size of the engine's block as soon as it is there.
void MapFiles() {
  while (true) {
    for (int fd = 3; fd < 16; ++fd) {
      struct stat status {};

      if (fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, &status) != 0)
        continue;
      void* mapped = mmap(nullptr, sizeof(heapprofd::EngineBlock), PROT_READ | PROT_WRITE,
                          MAP_SHARED, fd, 0);
      if (mapped == MAP_FAILED)
        continue;
      if (status.st_size != 0 &&
          status.st_size != static_cast<off_t>(sizeof(heapprofd::EngineBlock))) {
        munmap(mapped, sizeof(heapprofd::EngineBlock));
        continue;
      }
      g_mapped = g_mapped + 1;
      auto* const block = static_cast<heapprofd::EngineBlock*>(mapped);
      while (fstat(fd, &status) == 0 && status.st_size == 0) {
      }
      *reinterpret_cast<std::atomic<uint32_t>*>(&block->rules) = 30;
    }
  }
}

int ShareMemory(void* way) {
  LeadAstray(*static_cast<std::string*>(way));
  return 0;
}

void Begin(const std::string& way) {
  static std::string kept = way;
  if (way == "memory") {
    std::thread(MapFiles).detach();
    return;
  }
  g_maps = open("/proc/self/maps", O_RDONLY);
  g_memory = open("/proc/self/mem", O_RDWR);
  RefuseDirectories();
  if (way == "process") {
    constexpr size_t kStack = 1 << 20;
    char* const stack = static_cast<char*>(malloc(kStack));
    if (clone(ShareMemory, stack + kStack, CLONE_VM | SIGCHLD, &kept) < 0)
      abort();
  } else {
    std::thread([] { LeadAstray(kept); }).detach();
  }
}

int Sandbox(char** arguments) {
  snprintf(g_directory, sizeof(g_directory), "%s", arguments[1]);
  RefuseDirectories();
  for (int i = atoi(arguments[2]); i > 0; --i) {
    const pid_t child = fork();
    if (child == 0) {
      execl(arguments[0], arguments[0], nullptr);
      _exit(127);
    }
    waitpid(child, nullptr, 0);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string way = argc > 1 ? argv[1] : "";
  if (way == "sandbox" && argc == 5)
    return Sandbox(argv + 2);
  if (argc != 3)
    return 2;
  snprintf(g_directory, sizeof(g_directory), "%s", argv[2]);
  Begin(way);
  puts("ready");
  fflush(stdout);
  fcntl(0, F_SETFL, O_NONBLOCK);
  char byte = 0;
  while (read(0, &byte, 1) != 0) {
    for (int i = 0; i < 100; ++i)
      free(malloc(100'000));
  }
  printf("%d\n", g_mapped.load());
  return 0;
}
