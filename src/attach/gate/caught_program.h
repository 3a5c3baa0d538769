// A program that has been caught at its start, between the thread that holds it and the
// session that is to record it: the session decides, the thread acts, and the session
// hears how that went.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "attach/attached_process.h"
#include "base/status.h"

namespace heapprofd {

class CaughtProgram {
 public:
  explicit CaughtProgram(std::unique_ptr<AttachedProcess> process)
      : process_(std::move(process)) {}

  // The session's until Accept, the thread's from then on until Conclude.
  AttachedProcess& process() { return *process_; }

  // Of the session: shared memory is ready, the hooks may go in.
  void Accept();

  // Of either: it goes on without us.
  void Refuse();

  // How that went, once it has. With `process` if all is well.
  std::optional<Status> TakeConclusion(std::unique_ptr<AttachedProcess>* process);

  // Of the thread: whether it was accepted. Nobody lets it wait longer than a second, and
  // who says nothing until then refuses.
  bool WaitForDecision();

  // Of the thread, which has done with it.
  void Conclude(Status status);

 private:
  enum class Decision : uint8_t { kNone, kAccept, kRefuse };

  std::mutex mutex_;
  std::condition_variable changed_;
  Decision decision_ = Decision::kNone;
  bool is_concluded_ = false;
  Status status_;
  std::unique_ptr<AttachedProcess> process_;
};

}  // namespace heapprofd
