// Where an Android device puts a heap dump, and how that comes about: each of these asks
// for one, knows its files among those of a directory, and removes them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/device/adb.h"

namespace heapprofd {

// A line of `ls -l`, and the name at its end.
struct ListedFile {
  std::string name;
  std::string line;
};

class DumpPlace {
 public:
  virtual ~DumpPlace() = default;

  // Asks the program. When this fails, and when it does not, Remove() is due.
  virtual Status Ask(const Adb& adb) = 0;

  // The directory on the device.
  virtual const std::string& directory() const = 0;

  // What is in that directory.
  Result<std::vector<ListedFile>> List(const Adb& adb) const;

  // Where adb may fetch what the file of this name there has. The next name may get the
  // same path.
  virtual Result<std::string> PathToFetch(const Adb& adb, const std::string& name);

  // Whether a file of this name there is of the dump.
  virtual bool IsPart(const std::string& name) const = 0;

  // An error: what is left there.
  virtual Status Remove(const Adb& adb) = 0;

  // What a user should know of how it was asked.
  const std::vector<std::string>& notes() const { return notes_; }

 protected:
  std::string root_;  // before commands that need it; empty: adb's user does
  std::vector<std::string> notes_;
};

// By `am dumpheap`, to a new directory. `process`: its name or number. `sdk`: the version
// of the device's.
std::unique_ptr<DumpPlace> ActivityManagerDump(const std::string& process,
                                               bool with_garbage,
                                               int sdk);

// By SIGUSR1, as root: Dalvik before Android 3.0 dumps to /data/misc then, in one file or
// two.
std::unique_ptr<DumpPlace> SignalDump(const std::string& process);

}  // namespace heapprofd
