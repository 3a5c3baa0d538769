#include "symbolize/build_id_index.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/byte_reader.h"
#include "base/files/own_file.h"
#include "base/scoped_fd.h"
#include "symbolize/elf_identity.h"

namespace heapprofd {
namespace {

namespace fs = std::filesystem;

std::string CacheName(const std::string& root) {
  return "index-" + std::to_string(std::hash<std::string>()(root));
}

uint64_t ChangedNs(const struct stat& status) {
  return static_cast<uint64_t>(status.st_ctim.tv_sec) * 1'000'000'000u +
         static_cast<uint64_t>(status.st_ctim.tv_nsec);
}

}  // namespace

BuildIdIndex::BuildIdIndex(const std::vector<std::string>& roots,
                           const DiskCache& cache) {
  for (const std::string& root : roots) {
    std::error_code error;
    const fs::path canonical = fs::canonical(root, error);
    if (!error)
      AddRoot(canonical.string(), cache);
  }
}

void BuildIdIndex::AddRoot(const std::string& root, const DiskCache& cache) {
  const Entries known = Decode(cache.Load(CacheName(root)).value_or(""));
  Entries entries;
  std::set<std::pair<uint64_t, uint64_t>> seen;  // directories: device, inode
  std::error_code error;
  fs::recursive_directory_iterator it(root,
                                      fs::directory_options::follow_directory_symlink |
                                          fs::directory_options::skip_permission_denied,
                                      error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    struct stat status {};

    if (stat(it->path().c_str(), &status) != 0)
      continue;
    if (S_ISDIR(status.st_mode)) {
      const bool is_new = seen.emplace(status.st_dev, status.st_ino).second;
      is_truncated_ |= it.depth() >= kMaxDepth;
      if (!is_new || it.depth() >= kMaxDepth)
        it.disable_recursion_pending();
    } else if (S_ISREG(status.st_mode)) {
      if (files_ == kMaxFiles) {
        is_truncated_ = true;
        break;
      }
      ++files_;
      const std::string path = it->path().string();
      const Entry& entry = entries[path] = ReadEntry(path, status, known);
      if (!entry.build_id.empty())
        by_build_id_.emplace(entry.build_id, std::pair(path, entry.has_debug_info));
    }
  }
  if (opened_files_ > 0 || entries.size() != known.size())
    cache.Store(CacheName(root), Encode(entries));
}

BuildIdIndex::Entry BuildIdIndex::ReadEntry(const std::string& path,
                                            const struct stat& status,
                                            const Entries& known) {
  Entry entry{.inode = status.st_ino,
              .size = static_cast<uint64_t>(status.st_size),
              .changed_ns = ChangedNs(status),
              .has_debug_info = false,
              .build_id = {}};
  const auto found = known.find(path);
  if (found != known.end() && found->second.inode == entry.inode &&
      found->second.size == entry.size && found->second.changed_ns == entry.changed_ns)
    return found->second;
  ++opened_files_;
  const ScopedFd fd = OpenRegular(path);
  if (auto identity = IdentifyElf(fd.get())) {
    entry.has_debug_info = identity->has_debug_info;
    entry.build_id = std::move(identity->build_id);
  }
  return entry;
}

std::vector<std::string> BuildIdIndex::Find(const std::string& build_id) const {
  std::vector<std::pair<std::string, bool>> found;
  const auto [first, last] = by_build_id_.equal_range(build_id);
  for (auto it = first; it != last; ++it)
    found.push_back(it->second);
  std::ranges::sort(found, [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second : a.first < b.first;
  });
  std::vector<std::string> paths;
  paths.reserve(found.size());
  for (auto& [path, has_debug_info] : found)
    paths.push_back(std::move(path));
  return paths;
}

std::string BuildIdIndex::Encode(const Entries& entries) {
  std::string bytes;
  for (const auto& [path, entry] : entries) {
    AppendNumber(entry.inode, bytes);
    AppendNumber(entry.size, bytes);
    AppendNumber(entry.changed_ns, bytes);
    AppendNumber(static_cast<uint8_t>(entry.has_debug_info), bytes);
    for (const std::string& text : {path, entry.build_id}) {
      AppendNumber(static_cast<uint32_t>(text.size()), bytes);
      bytes += text;
    }
  }
  return bytes;
}

BuildIdIndex::Entries BuildIdIndex::Decode(std::string_view bytes) {
  Entries entries;
  ByteReader reader(bytes);
  while (reader.left() > 0) {
    Entry entry;
    entry.inode = reader.Read<uint64_t>();
    entry.size = reader.Read<uint64_t>();
    entry.changed_ns = reader.Read<uint64_t>();
    entry.has_debug_info = reader.Read<uint8_t>() != 0;
    std::string path(reader.ReadBytes(reader.Read<uint32_t>()));
    entry.build_id = reader.ReadBytes(reader.Read<uint32_t>());
    if (!reader.ok())
      return {};
    entries.emplace(std::move(path), std::move(entry));
  }
  return entries;
}

}  // namespace heapprofd
