// Every exec on this machine waits for our leave (fanotify), which is given at once but
// to those that somebody here wants to see first. One asks for all of them, however many
// recordings there are: each that asks costs every program that is started its time.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

// A thread that waits for leave to execute a program. It gets it when this object ends.
class HeldExec {
 public:
  // `events`: where the leave is given. It, and `file`, must live as long as this.
  HeldExec(int events, ScopedFd file, pid_t tid, std::string path)
      : events_(events), file_(std::move(file)), tid_(tid), path_(std::move(path)) {}

  ~HeldExec();
  HeldExec(const HeldExec&) = delete;
  HeldExec& operator=(const HeldExec&) = delete;

  pid_t tid() const { return tid_; }

  // Of what is executed: the program's, the script's, or the loader's.
  const std::string& path() const { return path_; }

 private:
  int events_;
  ScopedFd file_;
  pid_t tid_;
  std::string path_;
};

class ExecEvents {
 public:
  // Called on the answering thread for every exec there is: must not wait for anything.
  // Whoever wants the exec to wait keeps it.
  using Taker = std::function<void(const std::shared_ptr<const HeldExec>& exec)>;

  // The one of this process; it ends with its last owner. kUnavailable: not possible
  // here, and what it needs.
  static Result<std::shared_ptr<ExecEvents>> Shared();

  // `key`: the owner of `taker`, for Remove, after which it is not called any more.
  void Add(const void* key, Taker taker);
  void Remove(const void* key);

  // In a child that was forked: gives the leaves back to the parent alone. Whoever waits
  // for one would otherwise wait for the child, too, when the parent is gone.
  void LeaveToParent() { events_.reset(); }

  ExecEvents() = default;
  ~ExecEvents();
  ExecEvents(const ExecEvents&) = delete;
  ExecEvents& operator=(const ExecEvents&) = delete;

 private:
  Status Open();
  Status MarkFileSystems();
  void Answer();
  void AnswerEvents();

  ScopedFd events_;
  ScopedFd stop_event_;
  std::mutex mutex_;
  std::map<const void*, Taker> takers_;  // guarded by mutex_
  std::thread answerer_;
};

}  // namespace heapprofd
