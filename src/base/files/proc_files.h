// Files of /proc as text: their names and how they are read. What is in them belongs to
// the processes that they are about.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>

namespace heapprofd {

// The whole of a file, as of /proc, at most `limit` bytes; empty when it cannot be read.
std::string ReadProcFile(const std::string& path, size_t limit = size_t{64} << 20);

// Value of a field of /proc/PID/status or a thread's: "Seccomp" -> "2". Empty: no such
// field.
std::string StatusField(const std::string& status_text, const std::string& name);

// Of a user or group: real, effective, saved, of the file system.
using FourIds = std::array<id_t, 4>;

// Value of the field "Uid" or "Gid"; nullopt: no such field.
std::optional<FourIds> StatusIds(const std::string& status_text, const std::string& name);

bool AreAll(const FourIds& ids, id_t wanted);

// Fields of the text of /proc/PID/stat, whose names are numbers from 1 on (proc(5)),
// behind the command's name; a blank follows each.
std::string StatFields(const std::string& stat_text, int first, int last);

inline constexpr size_t kMaxStatText = 4096;

// The id of a process or thread in the innermost of its PID name spaces, from the text of
// its status; 0: not known.
pid_t InnerIdIn(const std::string& status_text);

// The same of one that has this number; that is it when nothing is known.
pid_t InnerId(pid_t id);

// The child of a process that has this number for the parent, which may be in a PID name
// space of its own; 0: there is none (any more).
pid_t ChildNumbered(pid_t parent, pid_t number);

// A user that there is none of.
inline constexpr uid_t kNobody = static_cast<uid_t>(-1);

// Who has started a process, whatever it may do to be another's in /proc; nullopt: it is
// gone.
std::optional<uid_t> RealUser(pid_t pid);

// Whether the process is of the user name space that we are of; nullopt: nobody can tell.
std::optional<bool> IsInOurUserNamespace(pid_t pid);

// "/proc/PID/" + rest.
std::string ProcPath(pid_t pid, const std::string& rest);

}  // namespace heapprofd
