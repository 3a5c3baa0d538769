#include "symbolize/disk_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/byte_reader.h"
#include "base/checksum.h"
#include "base/fd_path.h"
#include "base/files/folder.h"
#include "base/files/own_file.h"
#include "base/files/write_all.h"

namespace heapprofd {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "HPDCACHE";
// To be raised with every change of what is kept or of how names are made.
constexpr uint32_t kVersion = 1;

std::string Seal(std::string_view contents) {
  std::string body;
  AppendNumber(kVersion, body);
  body += contents;
  std::string bytes(kMagic);
  AppendNumber(Checksum(body), bytes);
  return bytes + body;
}

// Ours, and nobody else may change it.
bool IsOurs(const struct stat& status) {
  return status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// By descriptor: whatever the path leads to later. Invalid: it is not there, or not ours.
ScopedFd OpenCache(const std::string& directory) {
  Result<ScopedFd> parent = OpenFolder(Split(directory).folder, "");
  if (!parent.ok())
    return {};
  ScopedFd fd(openat(parent.value().get(), Split(directory).name.c_str(),
                     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));

  struct stat status {};

  if (fd.valid() && (fstat(fd.get(), &status) != 0 || !IsOurs(status)))
    fd.reset();
  return fd;
}

ScopedFd MakeCache(const std::string& directory) {
  const fs::path parent = fs::path(directory).parent_path();
  std::error_code error;
  if (geteuid() != 0 || IsUnalterable(parent.string()))
    fs::create_directories(parent, error);
  if (const Result<ScopedFd> folder = OpenFolder(parent.string(), ""); folder.ok())
    (void)mkdirat(folder.value().get(), Split(directory).name.c_str(), 0700);
  return OpenCache(directory);
}

// As root with a user's HOME (sudo) nothing is looked for or made there.
bool IsOwnOrMissing(const char* path) {
  return IsOwnDirectory(path) || access(path, F_OK) != 0;
}

}  // namespace

std::optional<std::string_view> UnsealCacheFile(std::string_view bytes) {
  ByteReader reader(bytes);
  if (reader.ReadBytes(kMagic.size()) != kMagic)
    return std::nullopt;
  const auto checksum = reader.Read<uint64_t>();
  const std::string_view body = reader.ReadBytes(reader.left());
  ByteReader body_reader(body);
  if (body_reader.Read<uint32_t>() != kVersion || !body_reader.ok() ||
      checksum != Checksum(body))
    return std::nullopt;
  return body_reader.ReadBytes(body_reader.left());
}

std::string DiskCache::StandardDirectory() {
  const char* cache = getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/')
    return IsOwnOrMissing(cache) ? std::string(cache) + "/heapprofd" : "";
  const char* home = getenv("HOME");
  if (home != nullptr && *home == '/')
    return IsOwnOrMissing(home) ? std::string(home) + "/.cache/heapprofd" : "";
  return "";
}

std::optional<std::string> DiskCache::Load(const std::string& name) const {
  const ScopedFd cache = directory_.empty() ? ScopedFd() : OpenCache(directory_);
  if (!cache.valid())
    return std::nullopt;
  const ScopedFd fd(
      openat(cache.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));

  struct stat status {};

  if (!fd.valid() || fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      !IsOurs(status) || static_cast<uint64_t>(status.st_size) > kMaxFileBytes)
    return std::nullopt;
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  if (pread(fd.get(), bytes.data(), bytes.size(), 0) != status.st_size)
    return std::nullopt;
  const auto contents = UnsealCacheFile(bytes);
  if (!contents)
    return std::nullopt;
  (void)futimens(fd.get(), nullptr);  // used now: see RemoveOldest
  return std::string(*contents);
}

void DiskCache::Store(const std::string& name, std::string_view contents) const {
  if (directory_.empty() || contents.size() > kMaxFileBytes / 2)
    return;
  const ScopedFd cache = MakeCache(directory_);
  if (!cache.valid())
    return;
  const std::string place = FdPath(cache.get()) + "/";
  std::string temporary = place + ".new-XXXXXX";
  const ScopedFd fd(mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid())
    return;
  if (WriteAll(fd.get(), Seal(contents)) != 0 ||
      rename(temporary.c_str(), (place + name).c_str()) != 0)
    unlink(temporary.c_str());
  RemoveOldest(place);
}

ScopedFd DiskCache::Lock() const {
  ScopedFd fd = directory_.empty() ? ScopedFd() : MakeCache(directory_);
  if (fd.valid() && flock(fd.get(), LOCK_EX) != 0)
    fd.reset();
  return fd;
}

void DiskCache::RemoveOldest(const std::string& place) const {
  struct File {
    fs::file_time_type used;
    uint64_t size;
    fs::path path;
  };

  std::vector<File> files;
  uint64_t sum = 0;
  std::error_code error;
  for (fs::directory_iterator it(place, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code gone;
    const uint64_t size = it->file_size(gone);
    const fs::file_time_type used = it->last_write_time(gone);
    if (gone)
      continue;
    files.push_back({used, size, it->path()});
    sum += size;
  }
  std::ranges::sort(files, {}, &File::used);
  for (const File& file : files) {
    if (sum <= max_bytes_)
      return;
    sum -= file.size;
    fs::remove(file.path, error);
  }
}

}  // namespace heapprofd
