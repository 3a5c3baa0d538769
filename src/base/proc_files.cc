#include "base/proc_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "base/scoped_fd.h"

namespace heapprofd {

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

bool AreAll(const FourIds& ids, id_t wanted) {
  return std::all_of(ids.begin(), ids.end(), [wanted](id_t id) { return id == wanted; });
}

}  // namespace heapprofd
