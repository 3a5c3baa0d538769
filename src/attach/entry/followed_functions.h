// Functions of allocators that only jump elsewhere: to a function of the same file, or by
// a linker's stub to another one's. A kernel probe on such a jump is emulated by the file's
// bytes, past a hook that stands there; so the code that it leads to is hooked.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "attach/allocators.h"
#include "attach/entry/file_code.h"
#include "attach/remote_process.h"

namespace heapprofd {

struct FollowedFunction {
  AllocatorFunction function;  // as its symbol says
  uint64_t code = 0;           // where its code begins
  bool is_alias = false;       // `code` is hooked for another function
};

class JumpFollower {
 public:
  // All outlive it. `allocators`: all of the process.
  JumpFollower(const RemoteProcess& process,
               FileCode* file,
               const std::vector<Allocator>& allocators);

  std::vector<FollowedFunction> Follow(const Allocator& allocator);

 private:
  FollowedFunction FollowOne(const AllocatorFunction& function);
  uint64_t Resolve(uint64_t slot) const;

  const RemoteProcess& process_;
  FileCode* file_;
  std::set<uint64_t> known_;  // code that is hooked for its own function
};

}  // namespace heapprofd
