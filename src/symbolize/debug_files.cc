#include "symbolize/debug_files.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "base/files/folder.h"
#include "base/files/foreign_file.h"
#include "base/files/root_environment.h"
#include "base/text.h"
#include "symbolize/elf_identity.h"

namespace heapprofd {
namespace {

std::string DirectoryOf(const std::string& path) {
  return path.substr(0, path.rfind('/') + 1);
}

std::vector<std::string> SplitDebugPath(const std::string& debug_path) {
  std::vector<std::string> directories;
  for (size_t at = 0; at <= debug_path.size();) {
    const size_t end = std::min(debug_path.find(':', at), debug_path.size());
    std::string directory = debug_path.substr(at, end - at);
    if (directory.starts_with('+') || directory.starts_with('-'))
      directory.erase(0, 1);
    directories.push_back(std::move(directory));
    at = end + 1;
  }
  return directories;
}

// The CRC-32 of zlib and Ethernet, which .gnu_debuglink has of the whole file.
std::optional<uint32_t> FileCrc(int fd) {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    table[i] = i;
    for (int bit = 0; bit < 8; ++bit)
      table[i] = (table[i] >> 1) ^ ((table[i] & 1) != 0 ? 0xedb88320u : 0u);
  }
  uint32_t crc = ~0u;
  std::vector<unsigned char> block(size_t{1} << 16);
  off_t at = 0;
  ssize_t got = 0;
  while ((got = pread(fd, block.data(), block.size(), at)) > 0) {
    for (ssize_t i = 0; i < got; ++i)
      crc = (crc >> 8) ^ table[(crc ^ block[static_cast<size_t>(i)]) & 0xff];
    at += got;
  }
  return got < 0 ? std::nullopt : std::optional(~crc);
}

// libdebuginfod writes what it fetches, and a few files beside, below HOME and its like.
// Root's cache is one that root alone can alter. False: there is none.
bool HasSafeCache() {
  constexpr char kCacheVariable[] = "DEBUGINFOD_CACHE_PATH";
  if (geteuid() != 0)
    return true;
  ForgetForeignPlaces();
  if (getenv(kCacheVariable) != nullptr)
    return true;
  const char* const caches = getenv("XDG_CACHE_HOME");
  const char* const home = getenv("HOME");
  const std::string parent = caches != nullptr ? caches
                             : home != nullptr ? std::string(home) + "/.cache"
                                               : RootsHome() + "/.cache";
  const std::string cache = parent + "/debuginfod_client";
  std::error_code error;
  if (IsUnalterable(parent))
    std::filesystem::create_directories(cache, error);
  return IsOwnAlone(cache) && setenv(kCacheVariable, cache.c_str(), 1) == 0;
}

// libdebuginfod, loaded when it is needed: it brings libcurl.
ScopedFd AskDebuginfod(const std::string& build_id, std::string* path) {
  const char* const urls = getenv("DEBUGINFOD_URLS");
  if (urls == nullptr || *urls == 0 || build_id.empty())
    return ScopedFd();
  static const bool has_safe_cache = HasSafeCache();
  if (!has_safe_cache)
    return ScopedFd();
  void* const library = dlopen("libdebuginfod.so.1", RTLD_NOW);
  if (library == nullptr)
    return ScopedFd();
  const auto begin = reinterpret_cast<void* (*)()>(dlsym(library, "debuginfod_begin"));
  const auto find = reinterpret_cast<int (*)(void*, const unsigned char*, int, char**)>(
      dlsym(library, "debuginfod_find_debuginfo"));
  const auto end = reinterpret_cast<void (*)(void*)>(dlsym(library, "debuginfod_end"));
  void* const client =
      begin != nullptr && find != nullptr && end != nullptr ? begin() : nullptr;
  if (client == nullptr)
    return ScopedFd();
  char* found = nullptr;
  ScopedFd fd(find(client, reinterpret_cast<const unsigned char*>(build_id.data()),
                   static_cast<int>(build_id.size()), &found));
  end(client);
  if (fd.valid() && found != nullptr)
    *path = found;
  free(found);
  return fd;
}

class Search {
 public:
  Search(const std::string& debug_path, SymbolFinder* finder)
      : directories_(SplitDebugPath(debug_path)), finder_(finder) {}

  std::optional<FoundFile> Debug(const ModuleFile& file, const ElfIdentity& identity) {
    if (auto found = ByBuildId(file.path, file.build_id))
      return found;
    if (!identity.debug_link.empty()) {
      for (const std::string& place : Places(file.path, identity.debug_link)) {
        if (auto found = Take(place, file.build_id, identity.debug_link_crc))
          return found;
      }
    }
    return FromServer(file.build_id);
  }

  // `owner` is the path of the file that says where it is.
  std::optional<FoundFile> Shared(const std::string& owner, const ElfIdentity& identity) {
    const std::string& build_id = identity.shared_debug_build_id;
    if (build_id.empty())
      return std::nullopt;
    if (auto found = ByBuildId(identity.shared_debug_link, build_id))
      return found;
    const std::string place = identity.shared_debug_link.starts_with('/')
                                  ? identity.shared_debug_link
                                  : DirectoryOf(owner) + identity.shared_debug_link;
    if (auto found =
            OpenIfMatching(place, build_id, WantedSymbols::kDebugInfo, &rejected_))
      return found;
    return FromServer(build_id);
  }

 private:
  std::optional<FoundFile> ByBuildId(const std::string& path,
                                     const std::string& build_id) {
    if (build_id.size() < 2)
      return std::nullopt;
    if (finder_ != nullptr) {
      if (auto found =
              finder_->Find(path, build_id, WantedSymbols::kDebugInfo, &rejected_))
        return found;
    }
    const std::string id = HexEncode(build_id);
    for (const std::string& directory : directories_) {
      if (!directory.starts_with('/'))
        continue;
      const std::string place =
          directory + "/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug";
      if (auto found =
              OpenIfMatching(place, build_id, WantedSymbols::kDebugInfo, &rejected_))
        return found;
    }
    return std::nullopt;
  }

  // Of the path as it is, and as it is without links: /lib/x has its debug file below
  // /usr/lib/debug/usr/lib today.
  std::vector<std::string> Places(const std::string& path,
                                  const std::string& link) const {
    std::vector<std::string> places;
    std::error_code error;
    const std::string real = OpenForeignPath(path).valid()
                                 ? std::filesystem::canonical(path, error).string()
                                 : std::string();
    for (const std::string& owner : {path, real}) {
      if (owner.empty() || (&owner != &path && owner == path && !places.empty()))
        continue;
      const std::string own = DirectoryOf(owner);
      for (const std::string& directory : directories_) {
        std::string place = directory.starts_with('/') ? directory : own;
        if (!directory.starts_with('/'))
          place.append(directory).append(directory.empty() ? "" : "/");
        else
          place.append(own.starts_with('/') ? "" : "/").append(own);
        places.push_back(place.append(link));
      }
    }
    return places;
  }

  std::optional<FoundFile> Take(const std::string& place,
                                const std::string& build_id,
                                uint32_t crc) {
    auto found = OpenIfMatching(place, build_id, WantedSymbols::kDebugInfo, &rejected_);
    if (found && build_id.empty() && FileCrc(found->fd.get()) != crc)
      found.reset();
    return found;
  }

  static std::optional<FoundFile> FromServer(const std::string& build_id) {
    FoundFile file;
    file.fd = AskDebuginfod(build_id, &file.path);
    const auto identity = IdentifyElf(file.fd.get());
    if (!identity || identity->build_id != build_id)
      return std::nullopt;
    return file;
  }

  std::vector<std::string> directories_;
  SymbolFinder* finder_;
  std::vector<RejectedFile> rejected_;  // of no interest: the names are missed elsewhere
};

}  // namespace

DebugFiles FindDebugFiles(const ModuleFile& file,
                          const std::string& debug_path,
                          SymbolFinder* finder) {
  DebugFiles files;
  auto identity = IdentifyElf(file.fd);
  if (!identity)
    return files;
  Search search(debug_path, finder);
  std::string owner = file.path;
  if (!identity->has_debug_info) {
    auto found = search.Debug(file, *identity);
    if (!found)
      return files;
    identity = IdentifyElf(found->fd.get());
    files.debug = std::move(found->fd);
    files.debug_path = owner = std::move(found->path);
  }
  if (!identity)
    return files;
  if (auto found = search.Shared(owner, *identity)) {
    files.shared = std::move(found->fd);
    files.shared_path = std::move(found->path);
  }
  return files;
}

}  // namespace heapprofd
