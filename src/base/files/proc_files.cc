#include "base/files/proc_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <system_error>
#include <vector>

#include "base/scoped_fd.h"

namespace heapprofd {
namespace {

constexpr size_t kStatusSize = 16384;

}  // namespace

std::string ProcPath(pid_t pid, const std::string& rest) {
  return "/proc/" + std::to_string(pid) + "/" + rest;
}

std::string ReadProcFile(const std::string& path, size_t limit) {
  std::string text;
  const ScopedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 16384> chunk{};
  while (fd.valid() && text.size() < limit) {
    const ssize_t got =
        read(fd.get(), chunk.data(), std::min(chunk.size(), limit - text.size()));
    if (got <= 0)
      break;
    text.append(chunk.data(), static_cast<size_t>(got));
  }
  return text;
}

std::string StatusField(const std::string& status_text, const std::string& name) {
  const std::string key = "\n" + name + ":";
  const size_t at = status_text.find(key);
  if (at == std::string::npos)
    return "";
  const size_t begin = status_text.find_first_not_of(" \t", at + key.size());
  const size_t end = status_text.find('\n', at + 1);
  return begin == std::string::npos || end == std::string::npos || begin > end
             ? ""
             : status_text.substr(begin, end - begin);
}

std::optional<FourIds> StatusIds(const std::string& status_text,
                                 const std::string& name) {
  std::istringstream words(StatusField(status_text, name));
  FourIds ids{};
  for (id_t& id : ids) {
    if (!(words >> id))
      return std::nullopt;
  }
  return ids;
}

std::string StatFields(const std::string& stat_text, int first, int last) {
  const size_t end_of_name = stat_text.rfind(')');
  if (end_of_name == std::string::npos)
    return "";
  std::istringstream fields(stat_text.substr(end_of_name + 1));
  std::string found;
  std::string field;
  constexpr int kFirst = 3;  // number of the field behind the name
  for (int number = kFirst; number <= last && fields >> field; ++number) {
    if (number >= first)
      found += field + " ";
  }
  return found;
}

pid_t InnerIdIn(const std::string& status_text) {
  const std::string ids = StatusField(status_text, "NSpid");
  const size_t last = ids.find_last_of(" \t");
  return static_cast<pid_t>(
      strtoul(ids.c_str() + (last == std::string::npos ? 0 : last + 1), nullptr, 10));
}

pid_t InnerId(pid_t id) {
  const pid_t inner = InnerIdIn(ReadProcFile(ProcPath(id, "status"), kStatusSize));
  return inner != 0 ? inner : id;
}

namespace {

// From ours to the innermost; empty: not known.
std::vector<pid_t> IdsOf(pid_t pid) {
  std::istringstream fields(
      StatusField(ReadProcFile(ProcPath(pid, "status"), kStatusSize), "NSpid"));
  return {std::istream_iterator<pid_t>(fields), std::istream_iterator<pid_t>()};
}

}  // namespace

pid_t ChildNumbered(pid_t parent, pid_t number) {
  const size_t depth = IdsOf(parent).size();
  if (depth <= 1)
    return number;                                  // as we number them
  constexpr size_t kMaxChildren = size_t{1} << 20;  // bytes
  std::error_code error;
  const std::filesystem::directory_iterator threads(ProcPath(parent, "task"), error);
  for (const auto& thread : threads) {
    std::istringstream children(
        ReadProcFile(thread.path().string() + "/children", kMaxChildren));
    for (pid_t child = 0; children >> child;) {
      const std::vector<pid_t> ids = IdsOf(child);
      if (ids.size() >= depth && ids[depth - 1] == number)
        return child;
    }
  }
  return 0;
}

std::optional<uid_t> RealUser(pid_t pid) {
  const std::optional<FourIds> users =
      StatusIds(ReadProcFile(ProcPath(pid, "status"), kStatusSize), "Uid");
  return users ? std::optional(users->front()) : std::nullopt;
}

// By the map of its ids: for the link in "ns" the kernel waits while the process hangs in
// an exec, and shows it only to those who may trace it. Nobody but root can make another
// name space that has the map of ours, and there all ids are ours.
std::optional<bool> IsInOurUserNamespace(pid_t pid) {
  constexpr size_t kMapSize = 16384;  // of 340 lines
  const std::string theirs = ReadProcFile(ProcPath(pid, "uid_map"), kMapSize);
  if (theirs.empty() && !RealUser(pid))
    return std::nullopt;
  return theirs == ReadProcFile("/proc/self/uid_map", kMapSize);
}

bool AreAll(const FourIds& ids, id_t wanted) {
  return std::all_of(ids.begin(), ids.end(), [wanted](id_t id) { return id == wanted; });
}

}  // namespace heapprofd
