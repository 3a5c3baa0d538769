#include "unwind/known_code.h"

#include <iterator>
#include <utility>

namespace heapprofd {
namespace {

constexpr size_t kMaxMappings = 65'536;

// The kernel splits and joins mappings as their protections change.
bool IsPartOf(const MapEntry& part, const MapEntry& whole) {
  const bool is_same_file =
      part.device == whole.device && part.inode == whole.inode && part.path == whole.path;
  const bool is_in_step =
      part.inode == 0 || part.offset - whole.offset == part.start - whole.start;
  return part.start >= whole.start && part.end <= whole.end && is_same_file && is_in_step;
}

}  // namespace

bool KnownCode::is_full() const {
  return mappings_->size() >= kMaxMappings;
}

std::optional<PlacedCode> KnownCode::CameBack(const MapEntry& entry,
                                              const Module* module) const {
  const auto after = places_.upper_bound(entry.start);
  if (after == places_.begin())
    return std::nullopt;
  const PlacedCode& known = std::prev(after)->second;
  if (!IsPartOf(entry, known.entry) || ModuleOf(known.mapping) != module)
    return std::nullopt;
  return PlacedCode{.entry = entry, .mapping = known.mapping};
}

uint64_t KnownCode::Clear(const MapEntry& entry) {
  uint64_t others = 0;
  auto other = places_.lower_bound(entry.start);
  if (other != places_.begin() && std::prev(other)->second.entry.end > entry.start)
    --other;
  while (other != places_.end() && other->first < entry.end) {
    if (!IsPartOf(other->second.entry, entry))
      ++others;
    other = places_.erase(other);
  }
  return others;
}

std::optional<PlacedCode> KnownCode::Add(const MapEntry& entry,
                                         std::shared_ptr<Module> module) {
  if (is_full())
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
  constexpr uint64_t kPerMapping = sizeof(Mapping) + 3 * sizeof(PlacedCode) + 64;
  bytes_ += kPerMapping + 3 * mapping.path.size();
  has_any_without_file_ |= module == nullptr;
  mappings_->push_back(std::move(mapping));
  modules_.push_back(std::move(module));
  const PlacedCode code{.entry = entry,
                        .mapping = static_cast<MappingId>(mappings_->size() - 1)};
  places_.emplace(entry.start, code);
  return code;
}

// p_vaddr - p_offset of the segment that is mapped at `entry`.
uint64_t KnownCode::LoadBiasOf(const MapEntry& entry, const Module& module) const {
  uint64_t image_base = 0;
  const auto after = places_.lower_bound(entry.start);
  if (after != places_.begin()) {
    const PlacedCode& before = std::prev(after)->second;
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

bool KnownCode::HasCodeAt(uint64_t pc) const {
  const auto after = places_.upper_bound(pc);
  return after != places_.begin() && pc < std::prev(after)->second.entry.end;
}

std::shared_ptr<const Module> KnownCode::UseOf(MappingId mapping) const {
  return modules_[mapping] != nullptr ? Module::Use(modules_[mapping]) : nullptr;
}

ScopedFd KnownCode::OpenFileOf(const Mapping& mapping) const {
  const Module* module = ModuleOf(static_cast<MappingId>(&mapping - mappings_->data()));
  return module != nullptr ? module->OpenFile() : ScopedFd();
}

}  // namespace heapprofd
