#include "cli/view/browser_start.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/files/own_file.h"
#include "base/files/temporary_directory.h"
#include "base/files/write_all.h"
#include "cli/run_command.h"

namespace heapprofd {
namespace {

constexpr char kFileName[] = "/view.html";

bool HasValue(const char* variable) {
  const char* const value = getenv(variable);
  return value != nullptr && *value != '\0';
}

bool WriteLeader(const std::string& path, const std::string& url) {
  const Result<ScopedFd> fd = OpenForWriting(path);
  return fd.ok() &&
         WriteAll(fd.value().get(),
                  "<!doctype html><meta charset=\"utf-8\"><meta "
                  "http-equiv=\"refresh\" content=\"0;url=" +
                      url + "\"><a href=\"" + url + "\">Heap profile</a>\n") == 0;
}

}  // namespace

BrowserStart::BrowserStart(const std::string& url) {
  if (isatty(STDOUT_FILENO) == 0 ||
      (!HasValue("DISPLAY") && !HasValue("WAYLAND_DISPLAY")))
    return;
  std::string directory = TemporaryDirectory() + "/heap_profile-view-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr)
    return;
  directory_ = directory;
  const std::string path = directory_ + kFileName;
  if (!WriteLeader(path, url))
    return;
  sigset_t none;
  sigemptyset(&none);
  // The shell ends at once; a browser may stay for as long as it likes.
  (void)RunCommand({"sh", "-c", "xdg-open \"$0\" </dev/null >/dev/null 2>&1 &", path},
                   none);
}

BrowserStart::~BrowserStart() {
  if (directory_.empty())
    return;
  unlink((directory_ + kFileName).c_str());
  rmdir(directory_.c_str());
}

}  // namespace heapprofd
