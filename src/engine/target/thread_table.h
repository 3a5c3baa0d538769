// Which threads of a target allocate, by the thread ids in its samples, and what they are
// called. Ids are the target's word: there is a limit to how many are kept.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "profile/model.h"

namespace heapprofd {

class ThreadTable {
 public:
  static constexpr size_t kMaxThreads = 16'384;

  // Fills `profile->threads`. `has_names`: the process knows its threads by the same ids
  // as we do, so that /proc tells their names.
  ThreadTable(TargetProfile* profile, bool has_names);

  // For each sample: threads get their names late, so a name is read again when its
  // thread has twice as many samples as the last time. kUnknownThread for 0 and when
  // there are too many.
  ThreadId Intern(uint32_t tid);

  // kUnknownThread: there is none yet.
  ThreadId Find(uint32_t tid) const;

 private:
  ThreadId Add(uint32_t tid);
  void ReadName(ThreadId id);

  TargetProfile* profile_;
  bool has_names_;
  std::unordered_map<uint32_t, ThreadId> ids_;
  std::vector<uint64_t> samples_;  // by ThreadId
  uint32_t last_tid_ = 0;          // who samples now mostly samples again
  ThreadId last_id_ = kUnknownThread;
};

}  // namespace heapprofd
