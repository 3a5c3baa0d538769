// The door of a service that has a socket of its own, for one user.
#pragma once

#include <unistd.h>

#include <memory>

#include "attach/gate/exec_gate.h"
#include "service/door.h"
#include "service/reception.h"
#include "service/runtime_directory.h"

namespace heapprofd {

class OwnDoor : public Door {
 public:
  // `listener`: see Reception. `directory` must outlive the door.
  static Result<std::unique_ptr<Door>> Open(RuntimeDirectory* directory,
                                            ScopedFd listener);

  void AddTo(std::vector<pollfd>* fds) const override;
  int MillisecondsToNext() const override;
  void Serve(Host& host) override;
  bool is_empty() const override;
  void Close() override;
  void LeaveToParent() override;
  void SetRecordings(size_t count, bool has_begun) override;

  bool are_recordings_known() const override { return true; }

  // An ordinary user's own gate says at once that it may not.
  Result<GateEnds> Watch(const std::function<void()>& /*between*/) override {
    return exec_gate_.AddWatcher(geteuid());
  }

  size_t DumpOthers(const std::string& label) override;

 private:
  OwnDoor(RuntimeDirectory* directory, std::unique_ptr<Reception> reception)
      : directory_(directory), reception_(std::move(reception)) {}

  RuntimeDirectory* directory_;
  ExecGate exec_gate_;
  std::unique_ptr<Reception> reception_;  // nullptr: closed
};

}  // namespace heapprofd
