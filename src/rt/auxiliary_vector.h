// What the kernel tells a program at its start (getauxval(3) without a libc).
#pragma once

#include <fcntl.h>

#include <cstddef>
#include <cstdint>

#include "rt/syscall.h"

namespace heapprofd::rt {

// Value of the entry of a type, AT_* of <elf.h>; `absent`: there is none, or /proc is not
// there. By system calls: not for hooks.
inline uint64_t AuxiliaryValue(uint64_t type, uint64_t absent) {
  const long fd =
      Syscall(SYS_openat, AT_FDCWD, ToArg("/proc/self/auxv"), O_RDONLY | O_CLOEXEC);
  if (IsError(fd))
    return absent;
  uint64_t entries[2 * 64] = {};  // type, value; the kernel has some twenty
  const long got = Syscall(SYS_read, fd, ToArg(entries), sizeof(entries));
  Syscall(SYS_close, fd);
  for (size_t i = 0; got > 0 && i + 1 < sizeof(entries) / sizeof(*entries); i += 2) {
    if (entries[i] == type)
      return entries[i + 1];
  }
  return absent;
}

}  // namespace heapprofd::rt
