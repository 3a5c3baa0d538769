#include "unwind/opened_files.h"

#include "base/clock.h"

namespace heapprofd {

std::shared_ptr<Module> OpenedFiles::ModuleOf(const MapEntry& entry) {
  if (entry.inode == 0)
    return cache_->Get(pid_, entry, &state_);
  const std::pair<uint64_t, uint64_t> file{entry.device, entry.inode};
  const auto known = modules_.find(file);
  state_ = ModuleCache::FileState::kFound;
  if (known != modules_.end())
    return known->second;
  const uint64_t begin_ns = MonotonicNs();
  std::shared_ptr<Module> module = cache_->Get(pid_, entry, &state_);
  spent_ns_ += MonotonicNs() - begin_ns;
  return is_late() ? nullptr : modules_.emplace(file, std::move(module)).first->second;
}

bool OpenedFiles::IsCode(const MapEntry& entry) {
  if (entry.inode == 0 || !entry.readable || entry.writable)
    return false;
  const std::shared_ptr<Module> module = ModuleOf(entry);
  return is_late() || (module != nullptr &&
                       module->code().OfMapping(entry.start, entry.offset, 0) != nullptr);
}

}  // namespace heapprofd
