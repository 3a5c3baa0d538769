// Processes that ran before a session began and belong to it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/session_config.h"

namespace heapprofd {

// Ids of those that the rules name, first the ones given by number, whether they exist or
// not. A name also stands for the command name, which is a script's own. `all` names
// nobody here: attaching to every process of a machine helps no one.
// `between`: called every few milliseconds.
std::vector<pid_t> FindRunning(const TargetRules& rules,
                               const std::function<void()>& between);

// Whether the names of the rules mean a process that runs: by its arguments, its executable
// or its command name.
bool IsNamedProcess(const TargetRules& rules, pid_t pid);

// Whether only root may look into it, because another user has started it. False: also
// when it has ended.
bool IsOthers(pid_t pid);

// Whether the process is still what it was when it connected to us as `user` and `group`:
// by an exec it may have got rights that these lack, and must not be shown to them. Only
// root needs to ask: others are not let near it by the kernel.
bool HasRightsOf(pid_t pid, uid_t user, gid_t group);

// The same; the error says why not, also when it cannot be found out.
Status CheckRightsOf(pid_t pid, uid_t user, gid_t group);

// A variable of the environment that the process was started with; nullopt when it has
// none.
std::optional<std::string> EnvironmentVariable(pid_t pid, const std::string& name);

// Which clients of ours a process has, so that it need not be attached to.
struct ClientsOf {
  bool is_preloaded = false;  // the library that sees malloc
  bool can_be_woken = false;  // any, by the wake page (wire/service_place.h)
};

// nullopt: its mappings could not be read in time, so it must not be touched now.
std::optional<ClientsOf> FindClients(pid_t pid, const std::string& wake_page);

}  // namespace heapprofd
