// Forked children that have not recorded anything yet: they are in no session (client/
// session.h), so that the usual fork and exec costs nothing, and nobody else knows them.
//
// Asked when a recording would otherwise end, e.g. because the program has put itself
// into the background.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace heapprofd {

// Number of processes that have the client library loaded and `socket_path` as their
// session, and of which `is_known` is false. Looks through /proc: some milliseconds.
size_t CountSilentProcesses(const std::string& socket_path,
                            const std::function<bool(pid_t)>& is_known);

}  // namespace heapprofd
