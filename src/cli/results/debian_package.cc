#include "cli/results/debian_package.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/text.h"

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

// How many letters the names of a file and of a list of files begin with alike.
size_t Likeness(std::string_view file, std::string_view list) {
  const auto differs = std::ranges::mismatch(file, list, [](unsigned char a, char b) {
    return std::tolower(a) == b;  // packages have no capitals
  });
  return static_cast<size_t>(differs.in1 - file.begin());
}

// The likely ones first: libfoo.so.1 is mostly in libfoo1.
std::vector<std::filesystem::path> ListsFor(std::string_view file,
                                            const std::string& lists) {
  std::vector<std::pair<size_t, std::filesystem::path>> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(lists, error)) {
    if (entry.path().extension() == ".list")
      found.emplace_back(Likeness(file, entry.path().filename().native()), entry.path());
  }
  std::ranges::stable_sort(found, std::greater(),
                           [](const auto& list) { return list.first; });
  std::vector<std::filesystem::path> paths;
  paths.reserve(found.size());
  for (auto& [likeness, path] : found)
    paths.push_back(std::move(path));
  return paths;
}

}  // namespace

std::optional<std::string> DebianPackageOf(const std::string& path,
                                           const std::string& lists) {
  const std::array<std::string, 2> wanted = {path, WithoutUsr(path)};
  for (const std::filesystem::path& list : ListsFor(FileName(path), lists)) {
    if (!HasLine(ContentsOf(list), wanted))
      continue;
    const std::string name = list.stem();  // "libfoo1:amd64"
    return name.substr(0, name.find(':'));
  }
  return std::nullopt;
}

}  // namespace heapprofd
