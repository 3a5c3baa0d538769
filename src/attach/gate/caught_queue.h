// What the thread that catches programs and the session tell each other: which programs
// wait for the session, what went wrong, that it is to come to an end, and that it has.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "attach/gate/caught_program.h"
#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

class CaughtQueue {
 public:
  // To be called first.
  Status Open();

  // Of the thread. False: too late, nobody asks for it any more.
  bool Add(const std::shared_ptr<CaughtProgram>& caught);

  // Of the thread: something has been concluded.
  void Raise() const;

  // Of a program that could not be caught; not of one that is gone.
  void NoteProblem(const Status& status);

  // The gate has ended, which is a problem unless we wanted it to. Counts once.
  void NoteEndOfGate();

  // Of the session: the thread is to come to an end, and waits for no decision.
  void AskToEnd();

  bool is_stopping();

  // Of the thread: it has come to it.
  void NoteOver();

  // Whether that is so within this time.
  bool WaitUntilOver(std::chrono::milliseconds time);

  // Readable when something has been added, or concluded; until TakeCaught.
  int fd() const { return event_.get(); }

  std::vector<std::shared_ptr<CaughtProgram>> TakeCaught();

  // One line each, so far.
  std::vector<std::string> TakeProblems();

 private:
  static constexpr size_t kMaxProblems = 1000;  // that nobody has taken yet

  ScopedFd event_;
  std::mutex mutex_;  // guards all below
  std::vector<std::shared_ptr<CaughtProgram>> caught_;
  std::vector<std::string> problems_;
  bool is_stopping_ = false;
  bool is_end_noted_ = false;
  bool is_over_ = false;
  std::condition_variable over_;
};

}  // namespace heapprofd
