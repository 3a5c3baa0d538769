// How much more memory a process may map or lock, by what /proc tells of it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace heapprofd {

// Returns the soft limit with this name in the text of /proc/PID/limits, in bytes.
// nullopt: unlimited, or there is no such limit.
std::optional<uint64_t> LimitIn(const std::string& limits, const std::string& name);

// Returns a field of the text of /proc/PID/status that is given in kB, in bytes; 0: there
// is no such field.
uint64_t SizeIn(const std::string& status, const std::string& name);

// True if memory that is mapped in the process without being used may cost or hinder it: it
// has locked its memory, could lock all of it now but not `bytes` more, or has no such room
// in its address space.
bool IsMemoryLimited(pid_t pid, uint64_t bytes);

// The same from texts of /proc/PID/status and limits.
bool IsMemoryLimited(const std::string& status,
                     const std::string& limits,
                     uint64_t bytes);

}  // namespace heapprofd
