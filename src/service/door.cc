#include "service/door.h"

namespace heapprofd {

Result<std::unique_ptr<Door>> Door::Open(RuntimeDirectory* directory, ScopedFd listener) {
  HPD_TRY_ASSIGN(std::unique_ptr<Reception> reception,
                 Reception::Open(directory->socket_place(), std::move(listener)));
  std::unique_ptr<Door> door(new Door(directory, std::move(reception)));
  // Programs that an earlier service has woken may be wanted by no recording now. Those
  // that it recorded notice by themselves that it is gone.
  door->SetRecordings(0, /*has_begun=*/true);
  return door;
}

void Door::AddTo(std::vector<pollfd>* fds) const {
  if (reception_ != nullptr)
    reception_->AddTo(fds);
}

int Door::MillisecondsToNext() const {
  return reception_ != nullptr ? reception_->MillisecondsToNext() : -1;
}

void Door::Serve(Host& host) {
  exec_gate_.Reap();
  if (reception_ == nullptr)
    return;
  reception_->Serve([&host](Visitor visitor) {
    if (visitor.is_command)
      host.AdmitCommand(std::move(visitor));
    else
      host.AdmitProgram(std::move(visitor));
  });
  for (const pid_t pid : reception_->TakeTurnedAway())
    host.NoteMissed(pid);
}

void Door::Close() {
  reception_.reset();
  directory_->GiveUpLock();  // the next service need not wait for what is left to do
}

void Door::LeaveToParent() {
  if (reception_ != nullptr)
    reception_->LeaveToParent();
  reception_.reset();
  directory_->ReleaseLock();
}

void Door::SetRecordings(size_t count, bool has_begun) {
  directory_->SetRecordings(count);
  if (has_begun)
    directory_->Wake();
}

}  // namespace heapprofd
