// The allocators in a process: every module that defines malloc and free, with the
// addresses of its functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "attach/remote_process.h"
#include "unwind/elf_functions.h"
#include "wire/attached_client.h"

namespace heapprofd {

struct AllocatorFunction {
  Hook hook;
  uint64_t address;
  uint64_t size;  // bytes, 0: unknown
};

struct Allocator {
  std::string path;
  std::vector<AllocatorFunction> functions;  // of distinct addresses
};

// What the loader and libc keep, for ThreadLayout; 0: not found.
struct LibcAddresses {
  uint64_t stack_end = 0;          // of __libc_stack_end
  uint64_t thread_id_field = 0;    // of _thread_db_pthread_tid
  uint64_t thread_block_size = 0;  // of _thread_db_sizeof_pthread
};

// What musl links into a static program that frees nothing: its malloc has no free beside
// it, and nothing is missed without.
inline constexpr std::string_view kMallocThatNeverFrees = "__simple_malloc";

// Whether all that allocates and frees by the names behind `prefix` can be found.
bool HasWholeAllocator(const ElfContents& contents, const std::string& prefix = "");

struct ProcessCode {
  std::vector<Allocator> allocators;  // libc's last
  LibcAddresses libc;
  bool is_go = false;        // its executable is a Go program
  bool is_64_bit = false;    // its executable is an ELF file for this machine
  bool is_stripped = false;  // its executable has no symbol table
  bool has_loader = false;   // a dynamic loader is mapped
  bool lacks_free = false;   // its executable has a malloc, and no free
  // Files that could not be opened in time: what they define is not known.
  std::vector<std::string> unopened;
};

class AllocatorFinder {
 public:
  ProcessCode Find(const RemoteProcess& process, const std::vector<MapEntry>& maps);

 private:
  using Key = std::tuple<uint64_t, uint64_t, int64_t, int64_t, bool>;

  const ElfContents& Contents(pid_t pid,
                              const MapEntry& entry,
                              bool is_executable,
                              ProcessCode* code);

  std::map<Key, ElfContents> cache_;  // by device, inode, size, mtime, full table
};

// Why no allocation can be seen in a process without allocators, and what to do.
std::string NoAllocatorReason(const ProcessCode& code);

// Whether the process has one of our libraries, and the one that sees malloc.
bool HasClient(const std::vector<MapEntry>& maps);
bool HasPreloadedClient(const std::vector<MapEntry>& maps);

}  // namespace heapprofd
