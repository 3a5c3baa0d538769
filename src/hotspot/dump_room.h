// How large a dump may become before it harms others: the virtual machine that it is of,
// above all, which may live under the same limits.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace heapprofd {

// Half of the memory that is available to a process ("self" or its number), within the
// limits of its control groups, too; bytes.
uint64_t RoomInMemory(const std::string& process);

// All but the last twentieth of the file system that the file is on; bytes.
uint64_t RoomOnDisk(int file);

// Of a process's own directory: that on disk, and that in its memory where the files of
// its file system lie in memory.
uint64_t RoomInTemporary(int directory, pid_t pid);

// What a control group and those above it still allow, in either version of groups;
// UINT64_MAX: there is no limit. `groups`: where they are mounted, `cgroups`: text of
// /proc/PID/cgroup.
uint64_t RoomInGroups(const std::string& groups, const std::string& cgroups);

}  // namespace heapprofd
