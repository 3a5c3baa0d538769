#include "cli/results/debian_package.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace heapprofd {
namespace {

// Before /bin and /lib became links to /usr/bin and /usr/lib, packages listed their files
// there, and many still do.
std::string WithoutUsr(const std::string& path) {
  constexpr std::string_view kUsr = "/usr";
  return path.starts_with("/usr/") ? path.substr(kUsr.size()) : path;
}

bool HasLine(const std::string& file, const std::array<std::string, 2>& wanted) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (std::find(wanted.begin(), wanted.end(), line) != wanted.end())
      return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> DebianPackageOf(const std::string& path,
                                           const std::string& lists) {
  const std::array<std::string, 2> wanted = {path, WithoutUsr(path)};
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(lists, error)) {
    if (entry.path().extension() != ".list" || !HasLine(entry.path(), wanted))
      continue;
    const std::string name = entry.path().stem();  // "libfoo1:amd64"
    return name.substr(0, name.find(':'));
  }
  return std::nullopt;
}

}  // namespace heapprofd
