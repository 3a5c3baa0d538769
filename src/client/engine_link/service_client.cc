#include "client/engine_link/service_client.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include <cstring>

#include "client/engine_link/handshake_client.h"
#include "rt/compiler.h"
#include "rt/syscall.h"

namespace heapprofd {

constinit ServicePlace g_service_places[kServicePlaces];

namespace {

// A path put together in fixed memory; too long ones come out empty.
class Path {
 public:
  Path& Append(const char* text) {
    for (; *text != 0; ++text)
      Append(*text);
    return *this;
  }

  Path& AppendNumber(uint64_t number) {
    char digits[20];
    unsigned count = 0;
    do {
      digits[count++] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    while (count > 0)
      Append(digits[--count]);
    return *this;
  }

  const char* text() const { return is_too_long_ ? "" : text_; }

 private:
  void Append(char c) {
    if (size_ + 1 < sizeof(text_))
      text_[size_++] = c;
    else
      is_too_long_ = true;
  }

  char text_[sizeof(ServicePlace::socket_path)] = {};
  size_t size_ = 0;
  bool is_too_long_ = false;
};

uint32_t OwnUser() {
  return static_cast<uint32_t>(rt::Syscall(SYS_geteuid));
}

constexpr unsigned kDirectoryMode = 0700;
constexpr unsigned kSystemDirectoryMode = 0755;

// The page belongs to root or this user, who could harm the program anyway, and is long
// enough.
bool IsTrustworthy(long fd) {
  struct stat status {};

  if (rt::IsError(rt::Syscall(SYS_fstat, fd, rt::ToArg(&status))))
    return false;
  return S_ISREG(status.st_mode) && (status.st_uid == 0 || status.st_uid == OwnUser()) &&
         status.st_size >= static_cast<off_t>(kWakePageSize);
}

const WakePage* MapWakePage(const char* path) {
  const long fd = rt::Syscall(SYS_openat, AT_FDCWD, rt::ToArg(path),
                              O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (rt::IsError(fd))
    return nullptr;
  long address = -1;
  if (IsTrustworthy(fd))
    address = rt::Syscall(SYS_mmap, 0, kWakePageSize, PROT_READ, MAP_SHARED, fd, 0);
  rt::Syscall(SYS_close, fd);
  return rt::IsError(address) ? nullptr : reinterpret_cast<const WakePage*>(address);
}

// The directory by descriptor, if it is one of this user's: its path may lead elsewhere the
// next time. A negative number else.
long OpenOwnDirectory(const char* path) {
  struct stat status {};

  const long fd = rt::Syscall(SYS_openat, AT_FDCWD, rt::ToArg(path),
                              O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (rt::IsError(fd) || (!rt::IsError(rt::Syscall(SYS_fstat, fd, rt::ToArg(&status))) &&
                          status.st_uid == OwnUser()))
    return fd;
  rt::Syscall(SYS_close, fd);
  return -1;
}

// Makes the page that a service of this user will use, so that one that starts later
// finds this program. It appears at once with its full size: others look for it, too.
void MakeWakePage(const char* path) {
  rt::Syscall(SYS_mkdirat, AT_FDCWD, rt::ToArg(path),
              OwnUser() == 0 ? kSystemDirectoryMode : kDirectoryMode);
  const long directory = OpenOwnDirectory(path);
  if (directory < 0)
    return;
  const char* const wake = &kWakeName[1];
  Path draft;
  draft.Append(wake).Append(".").AppendNumber(
      static_cast<uint64_t>(rt::Syscall(SYS_gettid)));
  const long fd = rt::Syscall(SYS_openat, directory, rt::ToArg(draft.text()),
                              O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (!rt::IsError(fd)) {
    if (!rt::IsError(rt::Syscall(SYS_ftruncate, fd, kWakePageSize)) &&
        !rt::IsError(rt::Syscall(SYS_fchmod, fd, 0444)))
      rt::Syscall(SYS_linkat, directory, rt::ToArg(draft.text()), directory,
                  rt::ToArg(wake));
    rt::Syscall(SYS_unlinkat, directory, rt::ToArg(draft.text()), 0);
    rt::Syscall(SYS_close, fd);
  }
  rt::Syscall(SYS_close, directory);
}

Path UserDirectory() {
  Path path;
  if (const char* runtime = FindVariable("XDG_RUNTIME_DIR"))
    path.Append(runtime).Append(kUserSubdirectory);
  else
    path.Append(kUserFallback).AppendNumber(OwnUser());
  return path;
}

// The page beside the place's socket, if there is one by now. `is_ours`: a service of
// this user would be here.
void FindWakePage(ServicePlace& place, bool is_ours) {
  char directory[sizeof(place.socket_path)];
  memcpy(directory, place.socket_path, sizeof(directory));
  size_t end = sizeof(directory);
  while (end > 0 && directory[end - 1] != '/')
    --end;
  if (end == 0)
    return;
  directory[end - 1] = 0;
  Path wake;
  wake.Append(directory).Append(kWakeName);
  const WakePage* page = MapWakePage(wake.text());
  if (page == nullptr && is_ours) {
    MakeWakePage(directory);
    page = MapWakePage(wake.text());
  }
  place.wake.store(page, std::memory_order_release);
}

void OpenPlace(ServicePlace& place, const char* directory, bool is_ours) {
  if (directory[0] != '/')
    return;
  Path socket;
  socket.Append(directory).Append(kSocketName);
  memcpy(place.socket_path, socket.text(), sizeof(place.socket_path));
  FindWakePage(place, is_ours);
}

bool JoinPlace(ServicePlace& place, ClientOrigin origin) {
  if (place.socket_path[0] == 0)
    return false;
  const WakePage* wake = place.wake.load(std::memory_order_acquire);
  // Before the service is asked: a session that begins meanwhile wakes once more.
  if (wake != nullptr)
    place.seen.store(wake->generation.load(std::memory_order_acquire),
                     std::memory_order_relaxed);
  memcpy(g_session.socket_path, place.socket_path, sizeof(place.socket_path));
  const bool is_joined = Connect(g_session, origin) == ConnectResult::kConnected;
  // The socket can be there before its service: who is asked then starts, and makes the
  // page.
  if (wake == nullptr)
    FindWakePage(place, /*is_ours=*/false);
  return is_joined;
}

// A library that somebody preloads is told by the same variable (Perfetto's). Where it is
// not ours, ours has been linked, and is not meant.
bool IsToldToWait() {
  const char* value = FindVariable(kBlockingVariable);
  if (value == nullptr || value[0] != '1')
    return false;
  const char* preloaded = g_hooks_malloc ? nullptr : FindVariable("LD_PRELOAD");
  return preloaded == nullptr || preloaded[0] == 0;
}

}  // namespace

void OpenServicePlaces() {
  if (const char* directory = FindVariable(kDirectoryVariable)) {
    OpenPlace(g_service_places[0], directory, /*is_ours=*/true);
    return;
  }
  const bool is_root = OwnUser() == 0;
  if (!is_root)
    OpenPlace(g_service_places[0], UserDirectory().text(), /*is_ours=*/true);
  OpenPlace(g_service_places[1], kSystemDirectory, /*is_ours=*/is_root);
}

bool JoinService(bool was_dormant) {
  const ClientOrigin origin =
      was_dormant ? ClientOrigin::kDormant : ClientOrigin::kStartup;
  for (ServicePlace& place : g_service_places) {
    if (JoinPlace(place, origin))
      return true;
  }
  return false;
}

bool WaitForService() {
  if (!IsToldToWait())
    return false;
  const timespec pause{.tv_sec = 0, .tv_nsec = 2'000'000};
  while (true) {
    for (ServicePlace& place : g_service_places) {
      if (place.wake.load(std::memory_order_relaxed) == nullptr)
        FindWakePage(place, /*is_ours=*/false);
    }
    if (IsWoken() && JoinService(/*was_dormant=*/false))
      return true;
    rt::Syscall(SYS_nanosleep, rt::ToArg(&pause));
  }
}

}  // namespace heapprofd
