// Every exec on this machine waits for our leave (fanotify), which is given at once but
// to those that somebody here wants to see first. One asks for all of them, however many
// recordings there are: each that asks costs every program that is started its time.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

// A thread that waits for leave to execute a program. It gets it when this object ends,
// at the latest.
class HeldExec {
 public:
  // `events`: where the leave is given; must live as long as this.
  HeldExec(int events, ScopedFd file, pid_t tid, std::string path)
      : events_(events), file_(std::move(file)), tid_(tid), path_(std::move(path)) {}

  ~HeldExec();
  HeldExec(const HeldExec&) = delete;
  HeldExec& operator=(const HeldExec&) = delete;

  void Allow() const;

  bool is_allowed() const;

  pid_t tid() const { return tid_; }

  // Of what is executed: the program's, the script's, or the loader's.
  const std::string& path() const { return path_; }

 private:
  int events_;
  mutable std::mutex mutex_;
  mutable ScopedFd file_;  // guarded by mutex_; invalid: it has its leave
  pid_t tid_;
  std::string path_;
};

class ExecEvents {
 public:
  // Called on the answering thread for every exec there is: must not wait for anything.
  // Whoever wants the exec to wait keeps it; it waits a second at most.
  using Taker = std::function<void(const std::shared_ptr<const HeldExec>& exec)>;

  // The one of this process; it ends with its last owner. kUnavailable: not possible
  // here, and what it needs.
  static Result<std::shared_ptr<ExecEvents>> Shared();

  // `key`: the owner of `taker`, for Remove, after which it is not called any more.
  void Add(const void* key, Taker taker);
  void Remove(const void* key);

  // Gives the leave at that time (MonotonicNs) if `exec` has not got it by then.
  void AllowAt(const std::shared_ptr<const HeldExec>& exec, uint64_t time_ns);

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
  // Gives the leaves whose time has come; milliseconds until the next, -1: none.
  int AllowOverdue();
  void Wake() const;

  ScopedFd events_;
  ScopedFd wake_event_;
  std::atomic<bool> is_stopping_ = false;
  std::mutex takers_mutex_;
  std::map<const void*, Taker> takers_;
  std::mutex limits_mutex_;
  std::vector<std::pair<uint64_t, std::weak_ptr<const HeldExec>>> limits_;
  std::thread answerer_;
};

}  // namespace heapprofd
