#include "unwind/address_space.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "rt/machine.h"

namespace heapprofd {
namespace {

constexpr uint64_t kRefreshPauseNs = 5'000'000;
constexpr uint64_t kPauseFactor = 10;  // of what a refresh has taken
constexpr int64_t kMaxCreditNs = 20'000'000;
// A target can map and unmap code for ever; what is beyond is not found.
constexpr size_t kMaxMappings = 65'536;
constexpr size_t kMaxNoCode = 4096;
constexpr uint64_t kFilesNs = 50'000'000;          // for opening files, of one refresh
constexpr uint64_t kMapsPatienceNs = 100'000'000;  // 65,530 mappings take half of it

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

// A target can map one file many thousand times, and as many files.
struct AddressSpace::OpenedFiles {
  std::shared_ptr<Module> ModuleOf(pid_t pid, const MapEntry& entry, ModuleCache* cache) {
    if (entry.inode == 0)
      return cache->Get(pid, entry, &is_late);
    const std::pair<uint64_t, uint64_t> file{entry.device, entry.inode};
    const auto known = modules.find(file);
    is_late = false;
    if (known != modules.end())
      return known->second;
    const uint64_t begin_ns = MonotonicNs();
    std::shared_ptr<Module> module = cache->Get(pid, entry, &is_late);
    spent_ns += MonotonicNs() - begin_ns;
    return is_late ? nullptr : modules.emplace(file, std::move(module)).first->second;
  }

  // By its file, whatever the kernel says of the memory.
  bool IsCode(pid_t pid, const MapEntry& entry, ModuleCache* cache) {
    if (entry.inode == 0 || !entry.readable || entry.writable)
      return false;
    const std::shared_ptr<Module> module = ModuleOf(pid, entry, cache);
    return is_late || (module != nullptr &&
                       module->code().OfMapping(entry.start, entry.offset, 0) != nullptr);
  }

  uint64_t spent_ns = 0;
  bool is_late = false;  // the last one: it may be had later
  std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<Module>>
      modules;  // by device and inode as the maps have them
};

void RefreshPause::Note(uint64_t begin_ns, uint64_t end_ns, bool was_vain) {
  const uint64_t took_ns = end_ns - begin_ns;
  credit_ns_ = std::min(
      kMaxCreditNs,
      credit_ns_ + static_cast<int64_t>((begin_ns - credited_ns_) / kPauseFactor));
  credit_ns_ -= static_cast<int64_t>(took_ns);
  credited_ns_ = end_ns;
  uint64_t pause_ns =
      credit_ns_ < 0 ? kPauseFactor * static_cast<uint64_t>(-credit_ns_) : 0;
  if (was_vain)
    pause_ns = std::max({pause_ns, kRefreshPauseNs, kPauseFactor * took_ns});
  until_ns_ = end_ns + pause_ns;
}

AddressSpace::AddressSpace(pid_t pid,
                           ModuleCache* modules,
                           std::vector<Mapping>* mappings)
    : pid_(pid), modules_(modules), mappings_(mappings), maps_(pid, "maps") {}

Result<RefreshOutcome> AddressSpace::Refresh() {
  const uint64_t begin_ns = MonotonicNs();
  const GuardedText maps = maps_.Read(kMaxMapsText, kMapsPatienceNs);
  if (maps.error != 0)
    return Status::FromErrno(
        "cannot open the mappings of process " + std::to_string(pid_), maps.error);
  if (maps.is_late) {
    pause_.Note(begin_ns, MonotonicNs(), /*was_vain=*/true);
    return RefreshOutcome{.is_incomplete = true, .is_late = true};
  }
  if (maps.text.empty())
    return Status(StatusCode::kUnavailable, "cannot read the mappings of process " +
                                                std::to_string(pid_) +
                                                ": it has ended or may not be inspected");
  next_code_.clear();
  old_ = 0;
  kept_ = 0;
  std::vector<AddressRange> writable;
  std::vector<Mapped> mapped;
  OpenedFiles files;
  RefreshOutcome outcome;
  if (rt::kMayBeEmulated && !knows_emulator_)
    LookForEmulator(maps.text, &files);
  ForEachMapping(maps.text, is_emulated_ ? MapDetail::kOfAll : MapDetail::kOfCode,
                 [&](MapEntry& entry) {
                   if (entry.readable && entry.writable)
                     writable.push_back({.start = entry.start, .end = entry.end});
                   if (is_emulated_)
                     entry.executable = files.IsCode(pid_, entry, modules_);
                   AddMapped(entry, &mapped);
                   if (entry.executable && entry.path != "[vsyscall]")
                     LookAt(entry, &files, &outcome);
                 });
  ++refreshes_;
  outcome.executable_removed = kept_ < code_.size();
  removals_ += outcome.executable_removed ? 1 : 0;
  code_ = std::exchange(next_code_, {});
  writable_ = std::move(writable);
  mapped_ = std::move(mapped);
  return outcome;
}

// An emulator of this architecture, a program of another one, keeps the emulated code in
// memory that only it reads: then nothing that the kernel says is executable is for us.
void AddressSpace::LookForEmulator(std::string_view maps, OpenedFiles* files) {
  bool runs_here = false;
  bool has_code = false;
  bool is_late = false;
  ForEachMapping(maps, MapDetail::kOfCode, [&](const MapEntry& entry) {
    if (runs_here || !entry.executable || entry.inode == 0)
      return;
    runs_here = files->ModuleOf(pid_, entry, modules_) != nullptr;
    is_late |= files->is_late;
  });
  if (!runs_here && !is_late) {
    ForEachMapping(maps, MapDetail::kOfAll, [&](const MapEntry& entry) {
      has_code = has_code || files->IsCode(pid_, entry, modules_);
    });
  }
  knows_emulator_ = runs_here || !is_late;
  is_emulated_ = has_code;
}

void AddressSpace::AddMapped(const MapEntry& entry, std::vector<Mapped>* mapped) {
  if (!mapped->empty() && mapped->back().end == entry.start &&
      mapped->back().executable == entry.executable)
    mapped->back().end = entry.end;
  else
    mapped->push_back(
        {.start = entry.start, .end = entry.end, .executable = entry.executable});
}

// Both code_ and the maps are in order of address.
void AddressSpace::LookAt(MapEntry& entry, OpenedFiles* files, RefreshOutcome* outcome) {
  while (old_ < code_.size() && code_[old_].entry.start < entry.start)
    ++old_;
  if (old_ < code_.size() && IsSameCode(code_[old_].entry, entry)) {
    next_code_.push_back(std::move(code_[old_]));
    ++kept_;
    ++old_;
    return;
  }
  if (files->spent_ns >= kFilesNs) {
    outcome->is_incomplete = true;
    return;
  }
  std::optional<Code> adopted = Adopt(entry, files);
  if (files->is_late) {
    NoteLate(entry);
    outcome->is_incomplete = true;
    return;
  }
  // What was taken for no code meanwhile is looked at again.
  if (late_.erase(entry.start) != 0)
    ++replacements_;
  if (adopted)
    next_code_.push_back(std::move(*adopted));
  outcome->executable_added = true;
}

void AddressSpace::NoteLate(const MapEntry& entry) {
  constexpr size_t kMaxLateFiles = 64;  // as many may be opened at a time
  if (late_.size() < kMaxMappings)
    late_.insert(entry.start);
  if (late_files_.size() < kMaxLateFiles &&
      std::ranges::find(late_files_, entry.path) == late_files_.end())
    late_files_.push_back(entry.path);
}

// Code that comes back to its place, or a part of it, keeps its id. None when there are
// too many mappings.
std::optional<AddressSpace::Code> AddressSpace::Adopt(const MapEntry& entry,
                                                      OpenedFiles* files) {
  const bool is_full = mappings_->size() >= kMaxMappings;
  if (is_full && entry.inode != 0)
    return std::nullopt;
  const std::shared_ptr<Module> module = files->ModuleOf(pid_, entry, modules_);
  if (files->is_late)
    return std::nullopt;
  const auto said = no_code_.lower_bound(entry.start);
  if (said != no_code_.end() && *said < entry.end) {
    no_code_.clear();
    ++replacements_;
  }
  const auto after = places_.upper_bound(entry.start);
  if (after != places_.begin()) {
    const Code& known = std::prev(after)->second;
    if (IsPartOf(entry, known.entry) && ModuleOf(known.mapping) == module.get())
      return Code{.entry = entry, .mapping = known.mapping};
  }
  ClearPlace(entry);
  if (is_full)
    return std::nullopt;
  Mapping mapping;
  mapping.start = entry.start;
  mapping.end = entry.end;
  mapping.exact_offset = entry.offset;
  mapping.path = entry.path;
  if (module != nullptr) {
    mapping.load_bias = LoadBiasOf(entry, *module);
    mapping.build_id = module->build_id();
  }
  constexpr uint64_t kPerMapping = sizeof(Mapping) + 3 * sizeof(Code) + 64;
  bytes_ += kPerMapping + 3 * mapping.path.size();
  has_code_without_file_ |= module == nullptr;
  mappings_->push_back(std::move(mapping));
  modules_of_.push_back(module);
  const Code code{.entry = entry,
                  .mapping = static_cast<MappingId>(mappings_->size() - 1)};
  places_.emplace(entry.start, code);
  return code;
}

// p_vaddr - p_offset of the segment that is mapped at `entry`.
uint64_t AddressSpace::LoadBiasOf(const MapEntry& entry, const Module& module) const {
  uint64_t image_base = 0;
  const auto after = places_.lower_bound(entry.start);
  if (after != places_.begin()) {
    const Code& before = std::prev(after)->second;
    const Mapping& mapping = (*mappings_)[before.mapping];
    if (ModuleOf(before.mapping) == &module)
      image_base = mapping.start - mapping.exact_offset - mapping.load_bias;
  }
  const CodeSegment* segment =
      module.code().OfMapping(entry.start, entry.offset, image_base);
  if (segment == nullptr && !module.code().all().empty())
    segment = &module.code().all().front();
  return segment != nullptr ? segment->load_bias() : 0;
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
  if (!location)
    location = RefreshFor(pc);
  makes_code_ |= location && location->module == nullptr;
  return location;
}

std::optional<CodeLocation> AddressSpace::RefreshFor(uint64_t pc) {
  if (asked_.size() >= kMaxNoCode)
    asked_.clear();
  asked_.try_emplace(pc, refreshes_);
  const uint64_t begin_ns = MonotonicNs();
  if (!pause_.IsOver(begin_ns)) {
    ++postponed_;
    return std::nullopt;
  }
  const Result<RefreshOutcome> outcome = Refresh();
  if (!outcome.ok())
    return std::nullopt;
  if (outcome.value().is_late) {
    ++postponed_;
    return std::nullopt;
  }
  const std::optional<CodeLocation> location = Find(pc);
  if (location)
    asked_.erase(pc);
  pause_.Note(begin_ns, MonotonicNs(), !location && !outcome.value().is_incomplete);
  return location;
}

NotFound AddressSpace::WhyNotFound(uint64_t pc) {
  if (no_code_.contains(pc))
    return NotFound::kCertainlyNoCode;
  const auto after = std::ranges::upper_bound(mapped_, pc, {}, &Mapped::start);
  const bool is_mapped = after != mapped_.begin() && pc < std::prev(after)->end;
  if (is_mapped && (std::prev(after)->executable || makes_code_ || WasCode(pc)))
    return NotFound::kMayBeCode;
  const auto asked = asked_.find(pc);
  const bool is_known_since =
      asked != asked_.end() && asked->second < refreshes_;  // of maps read afterwards
  if (!is_known_since || no_code_.size() >= kMaxNoCode)
    return makes_code_ ? NotFound::kMayBeCode : NotFound::kNoCode;
  asked_.erase(asked);
  no_code_.insert(pc);
  return NotFound::kCertainlyNoCode;
}

bool AddressSpace::WasCode(uint64_t pc) const {
  const auto after = places_.upper_bound(pc);
  return after != places_.begin() && pc < std::prev(after)->second.entry.end;
}

bool AddressSpace::RefreshIfCheap() {
  const uint64_t begin_ns = MonotonicNs();
  if (!pause_.IsOver(begin_ns))
    return false;
  const Result<RefreshOutcome> outcome = Refresh();
  if (!outcome.ok() || outcome.value().is_late)
    return false;
  pause_.Note(begin_ns, MonotonicNs(), /*was_vain=*/false);
  return true;
}

void AddressSpace::Release() {
  maps_.Close();
  code_ = {};
  next_code_ = {};
  writable_ = {};
  places_ = {};
  mapped_ = {};
  asked_ = {};
  no_code_ = {};
  late_ = {};
}

ScopedFd AddressSpace::OpenFileOf(const Mapping& mapping) const {
  const Module* module = ModuleOf(static_cast<MappingId>(&mapping - mappings_->data()));
  return module != nullptr ? module->OpenFile() : ScopedFd();
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
