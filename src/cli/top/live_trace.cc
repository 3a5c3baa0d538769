#include "cli/top/live_trace.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string_view>

#include "query/allocators.h"
#include "trace/framing.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxUnread = size_t{64} << 20;  // bytes; packets are smaller by far
constexpr int64_t kPage = 4096;

}  // namespace

LiveTrace::LiveTrace(int fd) : fd_(fd) {
  builder_.BeginSource();
}

// False: nothing has come.
Result<bool> LiveTrace::ReadMore() {
  std::array<char, 65536> buffer{};
  bool has_more = false;
  while (true) {
    const ssize_t got = pread(fd_, buffer.data(), buffer.size(), position_);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return Status::FromErrno("cannot read what is recorded", errno);
    if (got == 0)
      break;
    has_more = true;
    position_ += got;
    unread_.append(buffer.data(), static_cast<size_t>(got));
    Import();
    if (unread_.size() > kMaxUnread)
      return Status(StatusCode::kCorrupt,
                    "cannot read what is recorded: it is no trace; report this");
  }
  if (has_more)  // what fails costs only memory
    fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
              position_ / kPage * kPage);
  return has_more;
}

void LiveTrace::Import() {
  std::string_view rest = unread_;
  while (const std::optional<std::string_view> packet = TakePacket(&rest))
    importer_.Import(*packet);
  unread_.erase(0, unread_.size() - rest.size());
}

Result<bool> LiveTrace::Update() {
  HPD_TRY_ASSIGN(const bool has_more, ReadMore());
  const size_t known = trace_.dumps.size();
  if (!has_more || known == dumps_known_)
    return false;
  importer_.ConvertTimes();
  builder_.KeepLastDumps();
  dumps_known_ = trace_.dumps.size();
  RestoreHeaps();
  return true;
}

void LiveTrace::RestoreHeaps() {
  is_allocator_ = AllocatorFrames(trace_);
  for (const auto& process : processes_)
    process->ForgetHeaps();
  for (uint32_t id = 0; id < trace_.dumps.size(); ++id) {
    const ImportedDump& dump = trace_.dumps[id];
    latest_ns_ =
        std::max(latest_ns_, static_cast<uint64_t>(std::max<int64_t>(dump.ts, 0)));
    const auto [entry, is_new] = by_upid_.try_emplace(dump.upid, processes_.size());
    if (is_new)
      processes_.push_back(
          std::make_unique<RestoredProfile>(trace_, is_allocator_, dump.upid));
    processes_[entry->second]->AddHeap(id);
  }
}

}  // namespace heapprofd
