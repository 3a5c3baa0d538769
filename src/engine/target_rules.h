// Which processes a session wants: Perfetto's rules for process_cmdline and pid.
//
// A name and the process's argv[0] are brought into the same form, what lies between the
// last / and the first @, and then compared as a whole. The name of the executable file
// counts like an argv[0], because servers like to rewrite theirs, and so does the
// kernel's: that of the link or script by which the file was started. A name with * in it
// is a pattern as of fnmatch: with a leading / it is compared with all of argv[0],
// otherwise with the file name.
#pragma once

#include <string>

#include "attach/gate/exec_names.h"
#include "engine/session_config.h"
#include "profile/model.h"

namespace heapprofd {

// True when a pid, a name or `all` selects the process; the other rules (startup,
// running, memory) are about its past and not looked at.
bool IsNamedBy(const TargetRules& rules, const ProcessDescription& process);

// True when a name means the program of this path.
bool IsNameOf(const TargetRules& rules, const std::string& path);

}  // namespace heapprofd
