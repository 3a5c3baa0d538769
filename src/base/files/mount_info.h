// What is mounted in a mount namespace, as /proc/PID/mountinfo says; whoever has mounted
// it has chosen the paths.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heapprofd {

struct Mount {
  int id = 0;
  std::string device;  // major:minor, of the file system
  std::string point;
  std::string type;
  std::string options;  // of the file system, as the kernel writes them
};

// Lines of /proc/PID/mountinfo; others are left out.
std::vector<Mount> ParseMountInfo(std::string_view text);

// Takes the next character, of which some are written as octal numbers: blanks and the
// like, and in options also those that would end them (`is_plain` is false).
char TakeMountCharacter(std::string_view* text, bool* is_plain);

}  // namespace heapprofd
