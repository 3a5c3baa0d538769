#include "attach/allocators.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <optional>
#include <set>

#include "base/text.h"
#include "rt/machine.h"
#include "unwind/module.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxCachedFiles = 4096;

constexpr std::array<std::string_view, kHookCount> kHookSymbols = {
#define HPD_SYMBOL(name, symbol) symbol,
    HPD_HOOK_LIST(HPD_SYMBOL)
#undef HPD_SYMBOL
};

// Allocators that are linked into a program often carry a prefix, so that libc's stay
// what they are: jemalloc of Redis and of Rust programs, tcmalloc, mimalloc.
constexpr std::array<std::string_view, 4> kPrefixes = {"je_", "_rjem_", "tc_", "mi_"};

constexpr std::string_view kStackEnd = "__libc_stack_end";
constexpr std::string_view kThreadIdField = "_thread_db_pthread_tid";
constexpr std::string_view kThreadBlockSize = "_thread_db_sizeof_pthread";
constexpr std::string_view kGoMarker = "runtime.mallocgc";

bool IsHookSymbol(std::string_view name) {
  return std::find(kHookSymbols.begin(), kHookSymbols.end(), name) != kHookSymbols.end();
}

bool IsWantedSymbol(std::string_view name) {
  if (IsHookSymbol(name) || name == kStackEnd || name == kThreadIdField ||
      name == kThreadBlockSize || name == kGoMarker || name == kMallocThatNeverFrees)
    return true;
  return std::any_of(kPrefixes.begin(), kPrefixes.end(), [name](std::string_view prefix) {
    return name.starts_with(prefix) && IsHookSymbol(name.substr(prefix.size()));
  });
}

bool IsClient(const std::string& path) {
  return FileName(path).starts_with("libheapprofd_");
}

// glibc's loader has a malloc for itself; ours passes on to the next one.
bool IsNoAllocator(const std::string& path) {
  return FileName(path).starts_with("ld-linux") || IsClient(path);
}

bool IsLibc(const std::string& path) {
  const std::string_view name = FileName(path);
  return name.starts_with("libc.so") || name.starts_with("libc-2.") ||
         name.starts_with("ld-musl");
}

// An image in the process: what has to be added to its ELF addresses.
struct LoadedImage {
  uint64_t inode = 0;
  uint64_t base = 0;

  auto operator<=>(const LoadedImage&) const = default;
};

// `before` is that of the mapping before.
std::optional<LoadedImage> ImageOf(const ElfContents& contents,
                                   const MapEntry& entry,
                                   const LoadedImage& before) {
  const CodeSegment* segment = contents.code.OfMapping(
      entry.start, entry.offset, before.inode == entry.inode ? before.base : 0);
  if (segment == nullptr)
    return std::nullopt;
  return LoadedImage{
      .inode = entry.inode,
      .base = CodeSegments::ImageBase(entry.start, entry.offset, *segment)};
}

const ElfSymbol* FindFunction(const ElfContents& contents, const std::string& name) {
  const auto found = contents.symbols.find(name);
  return found != contents.symbols.end() && found->second.is_function ? &found->second
                                                                      : nullptr;
}

std::vector<AllocatorFunction> FunctionsOf(const ElfContents& contents,
                                           uint64_t base,
                                           std::string_view prefix) {
  std::vector<AllocatorFunction> functions;
  std::set<uint64_t> addresses;
  const std::string start(prefix);
  if (!HasWholeAllocator(contents, start))
    return functions;
  for (size_t i = 0; i < kHookCount; ++i) {
    const ElfSymbol* symbol =
        FindFunction(contents, start + std::string(kHookSymbols[i]));
    if (symbol != nullptr && addresses.insert(symbol->address).second)
      functions.push_back({.hook = static_cast<Hook>(i),
                           .address = base + symbol->address,
                           .size = symbol->size});
  }
  return functions;
}

void TakeLibcAddresses(const ElfContents& contents, uint64_t base, LibcAddresses* libc) {
  const auto take = [&](std::string_view name, uint64_t* address) {
    const auto found = contents.symbols.find(name);
    if (found != contents.symbols.end())
      *address = base + found->second.address;
  };
  take(kStackEnd, &libc->stack_end);
  take(kThreadIdField, &libc->thread_id_field);
  take(kThreadBlockSize, &libc->thread_block_size);
}

std::string ReadLink(const std::string& path) {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = readlink(path.c_str(), target.data(), target.size());
  return length > 0 ? std::string(target.data(), static_cast<size_t>(length)) : "";
}

}  // namespace

bool HasWholeAllocator(const ElfContents& contents, const std::string& prefix) {
  if (FindFunction(contents, prefix + "malloc") == nullptr)
    return false;
  return FindFunction(contents, prefix + "free") != nullptr ||
         (prefix.empty() &&
          FindFunction(contents, std::string(kMallocThatNeverFrees)) != nullptr);
}

const ElfContents& AllocatorFinder::Contents(pid_t pid,
                                             const MapEntry& entry,
                                             bool is_executable,
                                             ProcessCode* code) {
  static const ElfContents none;
  const ForeignFile file = OpenMappedFile(pid, entry);
  if (file.is_late && std::find(code->unopened.begin(), code->unopened.end(),
                                entry.path) == code->unopened.end())
    code->unopened.push_back(entry.path);
  if (!file.fd.valid())
    return none;
  const Key key{file.device, file.inode, static_cast<int64_t>(file.size), file.changed_ns,
                is_executable};
  const auto known = cache_.find(key);
  if (known != cache_.end())
    return known->second;
  if (cache_.size() >= kMaxCachedFiles)
    cache_.clear();
  return cache_.emplace(key, ReadElf(file.fd.get(), IsWantedSymbol, is_executable))
      .first->second;
}

ProcessCode AllocatorFinder::Find(const RemoteProcess& process,
                                  const std::vector<MapEntry>& maps) {
  ProcessCode code;
  const pid_t view = process.view();
  const std::string exe = ReadLink(ProcPath(view, "exe"));
  LoadedImage last;
  std::set<LoadedImage> seen;
  for (const MapEntry& entry : maps) {
    if (!entry.executable || entry.inode == 0)
      continue;
    const bool is_executable = entry.path == exe || entry.path + " (deleted)" == exe;
    const ElfContents& contents = Contents(view, entry, is_executable, &code);
    const std::optional<LoadedImage> image = ImageOf(contents, entry, last);
    if (!image)
      continue;
    last = *image;
    if (!seen.insert(last).second)
      continue;
    if (is_executable) {
      code.is_64_bit = contents.is_valid;
      code.is_go = contents.symbols.contains(kGoMarker);
      code.is_stripped = contents.symbols.empty();
      code.lacks_free =
          contents.symbols.contains("malloc") && !HasWholeAllocator(contents);
    }
    code.has_loader |= FileName(entry.path).starts_with("ld-");
    TakeLibcAddresses(contents, image->base, &code.libc);
    if (IsNoAllocator(entry.path))
      continue;
    std::vector<AllocatorFunction> functions = FunctionsOf(contents, image->base, "");
    for (size_t i = 0; functions.empty() && i < kPrefixes.size(); ++i)
      functions = FunctionsOf(contents, image->base, kPrefixes[i]);
    if (!functions.empty())
      code.allocators.push_back({.path = entry.path, .functions = std::move(functions)});
  }
  std::stable_partition(code.allocators.begin(), code.allocators.end(),
                        [](const Allocator& a) { return !IsLibc(a.path); });
  return code;
}

bool HasClient(const std::vector<MapEntry>& maps) {
  return std::any_of(maps.begin(), maps.end(),
                     [](const MapEntry& entry) { return IsClient(entry.path); });
}

bool HasPreloadedClient(const std::vector<MapEntry>& maps) {
  return std::any_of(maps.begin(), maps.end(), [](const MapEntry& entry) {
    return IsClient(entry.path) && entry.path.ends_with("preload.so");
  });
}

std::string NoAllocatorReason(const ProcessCode& code) {
  if (!code.unopened.empty())
    return code.unopened.front() +
           " could not be opened in time, so it is not known what it defines; look at "
           "its "
           "file system, or try again";
  if (!code.is_64_bit)
    return std::string("its program is not built for ") + rt::kName +
           "; profile its 64-bit build for that";
  if (code.is_go)
    return "it is a Go program, whose allocator cannot be hooked; use Go's own pprof";
  if (code.is_stripped && !code.has_loader)
    return "its allocator is linked statically and the symbols are stripped; profile a "
           "build with symbols";
  if (code.lacks_free)
    return "its malloc is linked statically without a free that could be found, so what "
           "it frees would be missed; profile a dynamically linked build";
  return "none of its modules defines malloc and free";
}

}  // namespace heapprofd
