#include "unwind/address_space.h"

#include <fcntl.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace heapprofd {
namespace {

constexpr uint64_t kRefreshPauseNs = 5'000'000;
// A target can map and unmap code for ever; what is beyond is not found.
constexpr size_t kMaxMappings = 65'536;
constexpr size_t kMaxMapsText = size_t{64} << 20;  // bytes

std::string ReadFromStart(int fd) {
  std::string text;
  std::array<char, 65536> chunk{};
  if (lseek(fd, 0, SEEK_SET) != 0)
    return text;
  while (text.size() < kMaxMapsText) {
    const ssize_t got = read(fd, chunk.data(), chunk.size());
    if (got <= 0)
      break;
    text.append(chunk.data(), static_cast<size_t>(got));
  }
  return text;
}

// Neither another protection nor the loss of its name makes code other code.
bool IsSameCode(const MapEntry& a, const MapEntry& b) {
  return a.start == b.start && a.end == b.end && a.offset == b.offset &&
         a.device == b.device && a.inode == b.inode;
}

// The kernel splits and joins mappings as their protections change.
bool IsPartOf(const MapEntry& part, const MapEntry& whole) {
  const bool is_same_file =
      part.device == whole.device && part.inode == whole.inode && part.path == whole.path;
  const bool is_in_step =
      part.inode == 0 || part.offset - whole.offset == part.start - whole.start;
  return part.start >= whole.start && part.end <= whole.end && is_same_file && is_in_step;
}

}  // namespace

AddressSpace::AddressSpace(pid_t pid,
                           ModuleCache* modules,
                           std::vector<Mapping>* mappings)
    : pid_(pid),
      modules_(modules),
      mappings_(mappings),
      maps_(open(("/proc/" + std::to_string(pid) + "/maps").c_str(),
                 O_RDONLY | O_CLOEXEC)) {}

Result<RefreshOutcome> AddressSpace::Refresh() {
  const std::string text = maps_.valid() ? ReadFromStart(maps_.get()) : "";
  if (text.empty())
    return Status(StatusCode::kUnavailable, "cannot read the mappings of process " +
                                                std::to_string(pid_) +
                                                ": it has ended or may not be inspected");
  ++refreshes_;
  RefreshOutcome outcome;
  std::vector<Code> code;
  std::vector<MapEntry> writable;
  size_t kept = 0;
  size_t old = 0;  // both lists are in order of address
  for (MapEntry& entry : ParseMaps(text)) {
    if (entry.readable && entry.writable)
      writable.push_back(entry);
    if (!entry.executable || entry.path == "[vsyscall]")
      continue;
    while (old < code_.size() && code_[old].entry.start < entry.start)
      ++old;
    if (old < code_.size() && IsSameCode(code_[old].entry, entry)) {
      code.push_back(std::move(code_[old]));
      ++kept;
      ++old;
    } else {
      if (std::optional<Code> adopted = Adopt(entry))
        code.push_back(std::move(*adopted));
      outcome.executable_added = true;
    }
  }
  outcome.executable_removed = kept < code_.size();
  removals_ += outcome.executable_removed ? 1 : 0;
  code_ = std::move(code);
  writable_ = std::move(writable);
  return outcome;
}

// Code that comes back to its place, or a part of it, keeps its id. None when there are
// too many mappings.
std::optional<AddressSpace::Code> AddressSpace::Adopt(const MapEntry& entry) {
  std::shared_ptr<Module> module = modules_->Get(pid_, entry);
  const auto after = places_.upper_bound(entry.start);
  if (after != places_.begin()) {
    const Code& known = std::prev(after)->second;
    if (IsPartOf(entry, known.entry) && ModuleOf(known.mapping) == module.get())
      return Code{.entry = entry, .mapping = known.mapping};
  }
  ClearPlace(entry);
  if (mappings_->size() >= kMaxMappings)
    return std::nullopt;
  Mapping mapping;
  mapping.start = entry.start;
  mapping.end = entry.end;
  mapping.exact_offset = entry.offset;
  mapping.path = entry.path;
  if (module != nullptr) {
    mapping.load_bias = module->load_bias();
    mapping.build_id = module->build_id();
  }
  mappings_->push_back(std::move(mapping));
  modules_of_.push_back(std::move(module));
  const Code code{.entry = entry,
                  .mapping = static_cast<MappingId>(mappings_->size() - 1)};
  places_.emplace(entry.start, code);
  return code;
}

// Forgets what lay where `entry` lies now.
void AddressSpace::ClearPlace(const MapEntry& entry) {
  auto other = places_.lower_bound(entry.start);
  if (other != places_.begin() && std::prev(other)->second.entry.end > entry.start)
    --other;
  while (other != places_.end() && other->first < entry.end) {
    if (!IsPartOf(other->second.entry, entry))
      ++replacements_;
    other = places_.erase(other);
  }
}

std::optional<CodeLocation> AddressSpace::FindOrRefresh(uint64_t pc) {
  std::optional<CodeLocation> location = Find(pc);
  if (location)
    return location;
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const uint64_t now = static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u +
                       static_cast<uint64_t>(time.tv_nsec);
  if (now - vain_refresh_ns_ < kRefreshPauseNs || !Refresh().ok())
    return std::nullopt;
  location = Find(pc);
  if (!location)
    vain_refresh_ns_ = now;
  return location;
}

int AddressSpace::FileOf(const Mapping& mapping) const {
  const Module* module = ModuleOf(static_cast<MappingId>(&mapping - mappings_->data()));
  return module != nullptr ? module->fd() : -1;
}

std::optional<CodeLocation> AddressSpace::Find(uint64_t pc) const {
  auto after = std::upper_bound(
      code_.begin(), code_.end(), pc,
      [](uint64_t value, const Code& code) { return value < code.entry.start; });
  if (after == code_.begin())
    return std::nullopt;
  const Code& code = *--after;
  if (pc >= code.entry.end)
    return std::nullopt;
  return CodeLocation{.mapping = code.mapping,
                      .module = modules_of_[code.mapping].get(),
                      .rel_pc = (*mappings_)[code.mapping].ToRelPc(pc)};
}

}  // namespace heapprofd
