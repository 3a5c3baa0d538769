// Which processes a name on the command line means.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace heapprofd {

class NameMatcher {
 public:
  // `*` in a name stands for anything.
  explicit NameMatcher(std::vector<std::string> names) : names_(std::move(names)) {}

  // The last part of the path of a program or script.
  bool MatchesFile(const std::string& file_name) const;

  // By its executable's file name, the file name in argv[0], or its command name, which
  // is a script's own name.
  bool MatchesProcess(pid_t pid) const;

 private:
  std::vector<std::string> names_;
};

// Ids of all running processes that match, except our own.
std::vector<pid_t> FindProcessesByName(const NameMatcher& matcher);

}  // namespace heapprofd
