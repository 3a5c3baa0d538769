#include "cli/top/live_trace.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "query/allocators.h"
#include "trace/framing.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxUnread = size_t{64} << 20;  // bytes; packets are smaller by far
constexpr int64_t kPage = 4096;

}  // namespace

LiveTrace::LiveTrace(int fd) : fd_(fd) {
  builder_.processes().BeginSource();
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
  builder_.dumps().KeepLast();
  dumps_known_ = trace_.dumps.size();
  RestoreHeaps();
  return true;
}

// By upid.
std::set<uint32_t> LiveTrace::ShownProcesses() const {
  std::map<uint32_t, const ImportedDump*> last;
  for (const ImportedDump& dump : trace_.dumps) {
    const ImportedDump*& known = last[dump.upid];
    if (known == nullptr || dump.ts >= known->ts)
      known = &dump;
  }
  std::set<uint32_t> running;
  std::set<uint32_t> all;
  for (const auto& [upid, dump] : last) {
    all.insert(upid);
    if (!dump->disconnected)
      running.insert(upid);
  }
  if (!running.empty())
    return running;
  for (const RestoredProfile* process : shown_)
    running.insert(process->upid());
  return shown_.empty() ? all : running;
}

std::string LiveTrace::ThreadName(uint32_t utid) const {
  if (utid == kNoId)
    return "[threads that are not told apart]";
  const ImportedThread& thread = trace_.threads[utid];
  const std::string number = "thread " + std::to_string(thread.tid);
  const std::string_view name = thread.name == kNoId ? "" : trace_.Text(thread.name);
  return name.empty() ? number : std::string(name) + " (" + number + ")";
}

std::vector<LiveThread> LiveTrace::Threads() const {
  std::map<std::pair<uint32_t, uint32_t>, LiveThread> threads;
  for (const RestoredProfile* process : shown_)
    threads[{process->upid(), kNoId}] = {};
  for (const ThreadTotals& row : trace_.thread_totals) {
    const ImportedDump& dump = trace_.dumps[row.dump];
    if (!threads.contains({dump.upid, kNoId}))  // of a process that is not shown
      continue;
    LiveThread& thread = threads[{dump.upid, row.utid}];
    thread.upid = dump.upid;
    thread.utid = row.utid;
    thread.end_ns =
        std::max(thread.end_ns, static_cast<uint64_t>(std::max<int64_t>(dump.ts, 0)));
    const auto size = static_cast<double>(row.alloc_size);
    thread.allocated += size;
    thread.live += size - static_cast<double>(row.free_size);
    thread.objects +=
        static_cast<double>(row.alloc_count) - static_cast<double>(row.free_count);
  }
  std::vector<LiveThread> known;
  for (auto& [place, thread] : threads) {
    if (thread.end_ns == 0)
      continue;
    thread.name = ThreadName(thread.utid);
    known.push_back(std::move(thread));
  }
  return known;
}

void LiveTrace::RestoreHeaps() {
  const std::set<uint32_t> upids = ShownProcesses();
  is_allocator_ = AllocatorFrames(trace_);
  sums_.emplace(trace_);
  shown_.clear();
  for (const uint32_t upid : upids) {
    std::unique_ptr<RestoredProfile>& process = restored_[upid];
    if (process == nullptr)
      process = std::make_unique<RestoredProfile>(trace_, is_allocator_, *sums_, upid);
    process->ForgetHeaps();
    shown_.push_back(process.get());
  }
  for (uint32_t id = 0; id < trace_.dumps.size(); ++id) {
    const ImportedDump& dump = trace_.dumps[id];
    latest_ns_ =
        std::max(latest_ns_, static_cast<uint64_t>(std::max<int64_t>(dump.ts, 0)));
    if (upids.contains(dump.upid))
      restored_[dump.upid]->AddHeap(id);
  }
}

}  // namespace heapprofd
