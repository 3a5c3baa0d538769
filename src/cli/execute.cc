#include "cli/execute.h"

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "engine/obstacle.h"

namespace heapprofd {
namespace {

// execvp() says EACCES also of what it finds nowhere, when it may not look into a folder
// of PATH, or one has a folder of this name.
bool IsFound(const std::string& program) {
  if (program.find('/') != std::string::npos)
    return true;
  const char* const path = getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  std::error_code ignored;
  for (std::string folder; std::getline(folders, folder, ':');)
    if (std::filesystem::is_regular_file(std::filesystem::path(folder) / program,
                                         ignored))
      return true;
  return false;
}

}  // namespace

// A script and a program whose interpreter is missing are there, though the kernel says
// that they are not.
NoExecution WhyNotExecuted(const std::string& program, int error) {
  if (error == EACCES && !IsFound(program))
    return {.is_missing = true, .interpreter = ""};
  if (error != ENOENT && error != ENOTDIR)
    return {};
  return {.is_missing = true, .interpreter = MissingInterpreter(program)};
}

}  // namespace heapprofd
