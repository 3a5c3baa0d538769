#include "client/preload/libc_symbols.h"

#include <elf.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "client/loaded_objects.h"
#include "client/preload/real_functions.h"
#include "rt/syscall.h"
#include "wire/shared_memory.h"

namespace heapprofd {
namespace {

// An allocator is whole: libc's symbols lead here when all of these are libc's own.
constexpr std::array kAllocator = {"malloc",         "calloc",        "realloc", "free",
                                   "posix_memalign", "aligned_alloc", "memalign"};
constexpr std::array kOthers = {
    "reallocarray", "valloc", "pvalloc", "dlopen", "dlmopen",     "dlclose",
    "mlockall",     "prctl",  "syscall", "execve", "execvpe",     "execv",
    "execvp",       "execl",  "execlp",  "execle", "posix_spawn", "posix_spawnp"};

bool g_is_led_here = false;  // changes before there is anything to open

struct Redirection {
  ElfW(Sym) * symbol;
  uint64_t value;
};

struct Redirections {
  std::array<Redirection, kAllocator.size() + kOthers.size()> all;
  size_t count = 0;
};

// False when the next definition of the function is not libc's.
bool Add(const link_map& self,
         const link_map& libc,
         const char* name,
         Redirections* list) {
  const RealDefinition next = FindRealFunction(name);
  if (next.object != &libc)
    return false;
  const void* hook = FindFunction(self, name);
  const ElfW(Sym)* symbol = FindSymbol(libc, name, next.address);
  if (hook == nullptr || symbol == nullptr)
    return false;
  // The loader adds the base again; the sum wraps where this library lies below libc.
  list->all[list->count++] = {.symbol = const_cast<ElfW(Sym)*>(symbol),
                              .value = reinterpret_cast<uint64_t>(hook) - libc.l_addr};
  return true;
}

// How the pages of an address of the object are protected, by its program headers; 0:
// cannot be told.
int ProtectionOf(const link_map& object, uint64_t address) {
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(object.l_addr);
  if (object.l_addr == 0 || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
    return 0;
  const auto* segments =
      reinterpret_cast<const ElfW(Phdr)*>(object.l_addr + header->e_phoff);
  for (size_t i = 0; i < header->e_phnum; ++i) {
    const ElfW(Phdr)& segment = segments[i];
    if (segment.p_type == PT_LOAD &&
        address - object.l_addr - segment.p_vaddr < segment.p_filesz)
      return ((segment.p_flags & PF_R) != 0 ? PROT_READ : 0) |
             ((segment.p_flags & PF_W) != 0 ? PROT_WRITE : 0) |
             ((segment.p_flags & PF_X) != 0 ? PROT_EXEC : 0);
  }
  return 0;
}

// In a process that may have threads, which may be looking one of them up.
bool Write(const link_map& libc, const Redirections& list) {
  uint64_t begin = UINT64_MAX;
  uint64_t end = 0;
  for (size_t i = 0; i < list.count; ++i) {
    const auto at = reinterpret_cast<uint64_t>(list.all[i].symbol);
    begin = std::min(begin, at & ~(kPageSize - 1));
    end = std::max(end, (at + sizeof(ElfW(Sym)) + kPageSize - 1) & ~(kPageSize - 1));
  }
  const int protection = ProtectionOf(libc, begin);
  if (protection == 0 || protection != ProtectionOf(libc, end - kPageSize) ||
      rt::IsError(rt::Syscall(SYS_mprotect, static_cast<long>(begin),
                              static_cast<long>(end - begin), protection | PROT_WRITE)))
    return false;
  for (size_t i = 0; i < list.count; ++i)
    std::atomic_ref(list.all[i].symbol->st_value)
        .store(list.all[i].value, std::memory_order_relaxed);
  rt::Syscall(SYS_mprotect, static_cast<long>(begin), static_cast<long>(end - begin),
              protection);
  return true;
}

}  // namespace

bool LeadLibcHere() {
  const link_map* self = ObjectAt(_DYNAMIC);
  const auto* libc =
      static_cast<const link_map*>(FindRealFunction("__libc_start_main").object);
  if (self == nullptr || libc == nullptr)
    return false;
  Redirections list;
  for (const char* name : kAllocator) {
    if (!Add(*self, *libc, name, &list))
      return false;
  }
  for (const char* name : kOthers)
    Add(*self, *libc, name, &list);
  g_is_led_here = Write(*libc, list);
  return g_is_led_here;
}

bool IsLibcLedHere() {
  return g_is_led_here;
}

}  // namespace heapprofd
