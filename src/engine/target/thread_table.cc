#include "engine/target/thread_table.h"

#include <bit>

#include "engine/process_info.h"

namespace heapprofd {

ThreadTable::ThreadTable(TargetProfile* profile, bool has_names)
    : profile_(profile), has_names_(has_names) {
  profile_->threads.assign(1, {});
  samples_.assign(1, 0);
}

ThreadId ThreadTable::Intern(uint32_t tid) {
  if (tid != last_tid_) {
    const ThreadId known = Find(tid);
    last_tid_ = tid;
    last_id_ = known != kUnknownThread || tid == 0 ? known : Add(tid);
  }
  if (last_id_ != kUnknownThread && has_names_ &&
      std::has_single_bit(++samples_[last_id_]))
    ReadName(last_id_);
  return last_id_;
}

ThreadId ThreadTable::Find(uint32_t tid) const {
  if (tid == last_tid_)
    return last_id_;
  const auto known = ids_.find(tid);
  return known != ids_.end() ? known->second : kUnknownThread;
}

ThreadId ThreadTable::Add(uint32_t tid) {
  std::vector<ThreadDescription>& threads = profile_->threads;
  if (threads.size() >= kMaxThreads)
    return kUnknownThread;
  const auto id = static_cast<ThreadId>(threads.size());
  ids_.emplace(tid, id);
  threads.push_back({.tid = tid, .name = {}});
  samples_.push_back(0);
  return id;
}

void ThreadTable::ReadName(ThreadId id) {
  ThreadDescription& thread = profile_->threads[id];
  std::string name = ThreadName(profile_->process.pid, thread.tid);
  if (!name.empty())  // else it has ended
    thread.name = std::move(name);
}

}  // namespace heapprofd
