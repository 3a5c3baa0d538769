#include "unwind/address_space.h"

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "rt/machine.h"

namespace heapprofd {
namespace {

constexpr uint64_t kMapsPatienceNs = 100'000'000;  // 65,530 mappings take half of it

// Neither another protection nor the loss of its name makes code other code.
bool IsSameCode(const MapEntry& a, const MapEntry& b) {
  return a.start == b.start && a.end == b.end && a.offset == b.offset &&
         a.device == b.device && a.inode == b.inode;
}

// Neither late nor refused.
bool HasEnded(const GuardedText& maps) {
  return !maps.is_late && maps.text.empty() &&
         (maps.error == 0 || maps.error == ENOENT || maps.error == ESRCH);
}

// Others have code of the program's own making, which is not looked up in files.
bool IsOnDisk(const MapEntry& entry) {
  return entry.path.starts_with('/') && !entry.path.starts_with("/memfd:") &&
         !entry.path.starts_with("/dev/") && !entry.path.starts_with("/SYSV");
}

// An emulator of this architecture, a program of another one, keeps the emulated code in
// memory that only it reads: then nothing that the kernel says is executable is for us.
// None while it cannot be told.
std::optional<bool> IsEmulated(std::string_view maps, OpenedFiles* files) {
  bool runs_here = false;
  bool has_code = false;
  bool is_late = false;
  ForEachMapping(maps, MapDetail::kOfCode, [&](const MapEntry& entry) {
    if (runs_here || !entry.executable || entry.inode == 0)
      return;
    runs_here = files->ModuleOf(entry) != nullptr;
    is_late |= files->is_late();
  });
  if (!runs_here && is_late)
    return std::nullopt;
  if (!runs_here) {
    ForEachMapping(maps, MapDetail::kOfAll, [&](const MapEntry& entry) {
      has_code = has_code || files->IsCode(entry);
    });
  }
  return has_code;
}

}  // namespace

struct AddressSpace::Reading {
  Reading(pid_t pid, ModuleCache* modules, uint64_t wanted_pc)
      : files(pid, modules), wanted(wanted_pc) {}

  bool TakeOver(const MapEntry& entry, std::vector<PlacedCode>* before);

  OpenedFiles files;
  uint64_t wanted;               // an address whose code has no time to lose
  std::vector<PlacedCode> code;  // by address
  size_t next = 0;               // the first that may still be found of what was known
  size_t kept = 0;               // of that
  MappedMemory mapped;
  RefreshOutcome outcome;
};

// Both the maps and what was known `before` are in order of address.
bool AddressSpace::Reading::TakeOver(const MapEntry& entry,
                                     std::vector<PlacedCode>* before) {
  while (next < before->size() && (*before)[next].entry.start < entry.start)
    ++next;
  if (next == before->size() || !IsSameCode((*before)[next].entry, entry))
    return false;
  code.push_back(std::move((*before)[next++]));
  ++kept;
  return true;
}

AddressSpace::AddressSpace(pid_t pid,
                           ModuleCache* modules,
                           std::vector<Mapping>* mappings,
                           uint64_t files_ns)
    : pid_(pid),
      modules_(modules),
      files_ns_(files_ns),
      maps_(pid, "maps"),
      known_(mappings) {}

Result<RefreshOutcome> AddressSpace::Refresh(uint64_t wanted) {
  const uint64_t begin_ns = MonotonicNs();
  const GuardedText maps = maps_.Read(kMaxMapsText, kMapsPatienceNs);
  is_gone_ = HasEnded(maps);
  if (maps.error != 0)
    return Status::FromErrno(
        "cannot open the mappings of process " + std::to_string(pid_), maps.error);
  if (maps.is_late) {
    pause_.Note(begin_ns, MonotonicNs(), /*was_vain=*/true);
    return RefreshOutcome{.is_incomplete = true, .is_late = true};
  }
  // What may not be inspected is not opened, as a rule.
  if (maps.text.empty())
    return Status(StatusCode::kNotFound, "cannot read the mappings of process " +
                                             std::to_string(pid_) +
                                             ": it has ended or may not be inspected");
  has_unopened_files_ = false;
  Reading reading(pid_, modules_, wanted);
  if (rt::kMayBeEmulated && !is_emulated_)
    is_emulated_ = IsEmulated(maps.text, &reading.files);
  const bool is_emulated = is_emulated_.value_or(false);
  ForEachMapping(maps.text, is_emulated ? MapDetail::kOfAll : MapDetail::kOfCode,
                 [&](MapEntry& entry) {
                   if (is_emulated)
                     entry.executable = reading.files.IsCode(entry);
                   reading.mapped.Note(entry);
                   if (entry.executable && entry.path != "[vsyscall]")
                     LookAt(entry, &reading);
                 });
  return Accept(std::move(reading));
}

RefreshOutcome AddressSpace::Accept(Reading reading) {
  vain_.NoteReading();
  reading.outcome.executable_removed = reading.kept < code_.size();
  removals_ += reading.outcome.executable_removed ? 1 : 0;
  code_ = std::move(reading.code);
  mapped_ = std::move(reading.mapped);
  return reading.outcome;
}

void AddressSpace::LookAt(const MapEntry& entry, Reading* reading) {
  if (reading->TakeOver(entry, &code_))
    return;
  const bool is_wanted = reading->wanted >= entry.start && reading->wanted < entry.end;
  if (reading->files.spent_ns() >= files_ns_ && !is_wanted &&
      !reading->files.Has(entry)) {
    late_.Note(entry.start);
    has_unopened_files_ = true;
    reading->outcome.is_incomplete = true;
    return;
  }
  const bool has_room = !known_.is_full() || entry.inode == 0;
  std::optional<PlacedCode> adopted;
  if (has_room)
    adopted = Adopt(entry, &reading->files);
  if (has_room && reading->files.is_late()) {
    late_.NoteFile(entry.start, entry.path);
    reading->outcome.is_incomplete = true;
    return;
  }
  // What was taken for no code meanwhile is looked at again.
  if (late_.Arrive(entry.start))
    ++replacements_;
  if (adopted) {
    adopted->use = known_.UseOf(adopted->mapping);
    reading->code.push_back(std::move(*adopted));
  }
  reading->outcome.executable_added = true;
}

// None when its file is late.
std::optional<PlacedCode> AddressSpace::Adopt(const MapEntry& entry, OpenedFiles* files) {
  std::shared_ptr<Module> module = files->ModuleOf(entry);
  if (files->is_late())
    return std::nullopt;
  if (vain_.Contradict(entry.start, entry.end))
    ++replacements_;
  if (std::optional<PlacedCode> back = known_.CameBack(entry, module.get()))
    return back;
  replacements_ += known_.Clear(entry);
  gone_files_ += files->is_gone() && IsOnDisk(entry) ? 1u : 0u;
  return known_.Add(entry, std::move(module));
}

std::optional<CodeLocation> AddressSpace::FindOrRefresh(uint64_t pc) {
  std::optional<CodeLocation> location = Find(pc);
  if (!location)
    location = RefreshFor(pc);
  makes_code_ |= location && location->module == nullptr;
  return location;
}

std::optional<CodeLocation> AddressSpace::RefreshFor(uint64_t pc) {
  vain_.Ask(pc);
  const uint64_t begin_ns = MonotonicNs();
  if (!pause_.IsOver(begin_ns)) {
    vain_.Postpone();
    return std::nullopt;
  }
  const Result<RefreshOutcome> outcome = Refresh(pc);
  if (!outcome.ok()) {
    NoteVain(begin_ns);
    return std::nullopt;
  }
  if (outcome.value().is_late) {
    vain_.Postpone();
    return std::nullopt;
  }
  const std::optional<CodeLocation> location = Find(pc);
  if (location)
    vain_.Find(pc);
  pause_.Note(begin_ns, MonotonicNs(), !location && !outcome.value().is_incomplete);
  return location;
}

NotFound AddressSpace::WhyNotFound(uint64_t pc) {
  if (vain_.IsCertain(pc))
    return NotFound::kCertainlyNoCode;
  const MemoryKind kind = mapped_.KindAt(pc);
  if (kind == MemoryKind::kExecutable ||
      (kind == MemoryKind::kData && (makes_code_ || known_.HasCodeAt(pc))))
    return NotFound::kMayBeCode;
  if (vain_.Conclude(pc))
    return NotFound::kCertainlyNoCode;
  return makes_code_ ? NotFound::kMayBeCode : NotFound::kNoCode;
}

bool AddressSpace::RefreshIfCheap() {
  const uint64_t begin_ns = MonotonicNs();
  if (!pause_.IsOver(begin_ns))
    return false;
  const Result<RefreshOutcome> outcome = Refresh();
  if (!outcome.ok())
    NoteVain(begin_ns);
  if (!outcome.ok() || outcome.value().is_late)
    return false;
  pause_.Note(begin_ns, MonotonicNs(), /*was_vain=*/false);
  return true;
}

// The process has ended, or is on its way there: nothing more is to be had of it.
void AddressSpace::NoteVain(uint64_t begin_ns) {
  pause_.Note(begin_ns, MonotonicNs(), /*was_vain=*/true);
  has_unopened_files_ = false;
}

void AddressSpace::Release() {
  maps_.Close();
  code_ = {};
  mapped_ = {};
  known_.ForgetPlaces();
  vain_.ForgetAddresses();
  late_.ForgetPlaces();
}

std::optional<CodeLocation> AddressSpace::Find(uint64_t pc) const {
  auto after = std::upper_bound(
      code_.begin(), code_.end(), pc,
      [](uint64_t value, const PlacedCode& code) { return value < code.entry.start; });
  if (after == code_.begin())
    return std::nullopt;
  const PlacedCode& code = *--after;
  if (pc >= code.entry.end)
    return std::nullopt;
  return CodeLocation{.mapping = code.mapping,
                      .module = known_.ModuleOf(code.mapping),
                      .rel_pc = known_.ToRelPc(code.mapping, pc)};
}

}  // namespace heapprofd
