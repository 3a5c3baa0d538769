// Where short-lived files go: TMPDIR, and what stands in for a /tmp that cannot be
// written to.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace heapprofd {

// $TMPDIR, when it names one and, for root, others can rename nothing there; then /tmp,
// /var/tmp, /run and /dev/shm.
std::vector<std::string> TemporaryDirectories();

// The first of them that we may write to and `is_suitable`; /tmp when there is none.
std::string TemporaryDirectory(
    const std::function<bool(const std::string&)>& is_suitable = nullptr);

// For files without a name, in whose place nobody can put another one: $TMPDIR, whoever
// renames there, else TemporaryDirectory().
std::string NamelessDirectory();

// $TMPDIR, when it names one, else /tmp. Root takes none where others could put something
// else in place of what is his.
std::string ChosenTemporaryDirectory();

// Every user may look up what is in it.
bool IsOpenToAll(const std::string& directory);

}  // namespace heapprofd
