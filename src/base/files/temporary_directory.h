// Where short-lived files go: TMPDIR, and what stands in for a /tmp that cannot be
// written to.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace heapprofd {

// $TMPDIR, when it names one, then /tmp, /var/tmp, /run and /dev/shm.
std::vector<std::string> TemporaryDirectories();

// The first of them that we may write to and `is_suitable`; /tmp when there is none.
std::string TemporaryDirectory(
    const std::function<bool(const std::string&)>& is_suitable = nullptr);

// Every user may look up what is in it.
bool IsOpenToAll(const std::string& directory);

}  // namespace heapprofd
