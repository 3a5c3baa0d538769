#include "service/own_door.h"

namespace heapprofd {

Result<std::unique_ptr<Door>> OwnDoor::Open(RuntimeDirectory* directory,
                                            ScopedFd listener) {
  HPD_TRY_ASSIGN(std::unique_ptr<Reception> reception,
                 Reception::Open(directory->socket_path(), std::move(listener)));
  std::unique_ptr<Door> door(new OwnDoor(directory, std::move(reception)));
  // Programs that outlived an earlier service may now be wanted by nobody; those that it
  // profiled notice by themselves that it is gone.
  door->SetRecordings(0, /*has_begun=*/true);
  return door;
}

void OwnDoor::AddTo(std::vector<pollfd>* fds) const {
  if (reception_ != nullptr)
    reception_->AddTo(fds);
}

int OwnDoor::MillisecondsToNext() const {
  return reception_ != nullptr ? reception_->MillisecondsToNext() : -1;
}

void OwnDoor::Serve(Host& host) {
  exec_gate_.Turn();  // forgets processes that have ended
  if (reception_ != nullptr)
    reception_->Serve([&host](Visitor visitor) {
      if (visitor.is_command)
        host.AdmitCommand(std::move(visitor));
      else if (host.AdmitProgram(visitor) == Reply::kUnwanted)
        Decline(visitor);
    });
}

bool OwnDoor::is_empty() const {
  return reception_ == nullptr || reception_->is_empty();
}

void OwnDoor::Close() {
  reception_.reset();
  directory_->GiveUpLock();  // the next service need not wait for what is left to do
}

void OwnDoor::LeaveToParent() {
  if (reception_ != nullptr)
    reception_->LeaveToParent();
  reception_.reset();
  directory_->ReleaseLock();
}

void OwnDoor::SetRecordings(size_t count, bool has_begun) {
  directory_->SetRecordings(count);
  if (has_begun)
    directory_->Wake();
}

size_t OwnDoor::DumpOthers(const std::string& /*label*/) {
  return 0;
}

}  // namespace heapprofd
