// The bytes of one patch in the memory of a process: the only place that writes to
// functions of a target, and never to their first byte.
#pragma once

#include <cstdint>

#include "attach/remote_process.h"
#include "wire/attached_client.h"

namespace heapprofd {

enum class PatchBytes : uint8_t {
  kGone,      // not readable: the module was unloaded
  kOriginal,  // as in the file, but for breakpoints
  kWritten,   // our jump
  kBroken,    // our jump with breakpoints of others, or file's bytes, in it
  kForeign,   // somebody else's
};

PatchBytes LookAtPatch(const RemoteProcess& process, const PatchRecord& record);

// True if the file's bytes are there, without any breakpoint.
bool IsUntouched(const RemoteProcess& process, const PatchRecord& record);

// True if the process has our jump, whole or broken: it must be taken back.
bool IsPatched(const RemoteProcess& process, const PatchRecord& record);

// Writes the jump.
bool WritePatch(const RemoteProcess& process, const PatchRecord& record);

// Writes the file's bytes where ours are, and nothing elsewhere. False: what lies there is
// neither ours nor the file's.
bool TakePatchBack(const RemoteProcess& process, const PatchRecord& record);

// True if there is a probe of the kernel, or a breakpoint, on the function's first byte.
bool IsProbed(const RemoteProcess& process, const PatchRecord& record);

}  // namespace heapprofd
