// The directory in which a service can be found (wire/service_place.h): finding it,
// making it, and being the only service in it.
#pragma once

#include <memory>
#include <string>

#include "base/files/file_place.h"
#include "base/scoped_fd.h"
#include "base/status.h"
#include "wire/service_place.h"

namespace heapprofd {

// Where this user's service is, if there is one: a place that no other user can have made.
// Empty: there is no such place.
std::string ServiceDirectory();

// Where a service that is started now belongs: the user's, or the system's for root.
std::string OwnServiceDirectory();

class RuntimeDirectory {
 public:
  // Makes the directory and the wake page and takes the lock. kUnavailable: another
  // service has it. Everything is reached by the descriptor of the directory. Root takes no
  // directory that other users can alter, and no user's directory that has other files.
  static Result<std::unique_ptr<RuntimeDirectory>> Open(const std::string& path);

  ~RuntimeDirectory();
  RuntimeDirectory(const RuntimeDirectory&) = delete;
  RuntimeDirectory& operator=(const RuntimeDirectory&) = delete;

  const std::string& path() const { return path_; }

  // Where the service listens.
  FilePlace socket_place() const;

  // Another service may start here, although children of this one still live.
  void GiveUpLock();

  // For a child that must not keep the lock when its parent is gone.
  void ReleaseLock() { lock_.reset(); }

  // Programs that lie dormant ask again.
  void Wake();

  // What programs look at before they look any closer.
  void SetRecordings(size_t count);

 private:
  explicit RuntimeDirectory(std::string path) : path_(std::move(path)) {}

  Status MakeDirectory();
  Status CheckContents(bool was_open) const;
  Result<ScopedFd> OpenFile(const std::string& name) const;
  Status TakeLock();
  Status MapWakePage();

  std::string path_;
  ScopedFd directory_;
  ScopedFd lock_;
  WakePage* wake_ = nullptr;
};

}  // namespace heapprofd
