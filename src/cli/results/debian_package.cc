#include "cli/results/debian_package.h"

#include <algorithm>
#include <array>
#include <cstring>
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

// There are a thousand lists of a thousand lines: they are not cut into lines.
// `wanted`: the second one is the end of the first.
bool HasLine(std::string_view text, const std::array<std::string, 2>& wanted) {
  const std::string& part = wanted[1];
  while (const void* found = memmem(text.data(), text.size(), part.data(), part.size())) {
    const auto at = static_cast<size_t>(static_cast<const char*>(found) - text.data());
    const size_t begin = text.rfind('\n', at) + 1;  // npos + 1: the first line
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    if (line == wanted[0] || line == wanted[1])
      return true;
    text.remove_prefix(end);
  }
  return false;
}

std::string ContentsOf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::string text(static_cast<size_t>(std::max<std::streamoff>(file.tellg(), 0)), 0);
  file.seekg(0).read(text.data(), static_cast<std::streamsize>(text.size()));
  return text;
}

}  // namespace

std::optional<std::string> DebianPackageOf(const std::string& path,
                                           const std::string& lists) {
  const std::array<std::string, 2> wanted = {path, WithoutUsr(path)};
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(lists, error)) {
    if (entry.path().extension() != ".list" || !HasLine(ContentsOf(entry.path()), wanted))
      continue;
    const std::string name = entry.path().stem();  // "libfoo1:amd64"
    return name.substr(0, name.find(':'));
  }
  return std::nullopt;
}

}  // namespace heapprofd
