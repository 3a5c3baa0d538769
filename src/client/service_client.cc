#include "client/service_client.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include <cstring>

#include "client/handshake_client.h"
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

Path UserDirectory() {
  Path path;
  if (const char* runtime = FindVariable("XDG_RUNTIME_DIR"))
    path.Append(runtime).Append(kUserSubdirectory);
  else
    path.Append(kUserFallback).AppendNumber(OwnUser());
  return path;
}

void OpenPlace(ServicePlace& place, const char* directory) {
  if (directory[0] != '/')
    return;
  Path socket;
  socket.Append(directory).Append(kSocketName);
  memcpy(place.socket_path, socket.text(), sizeof(place.socket_path));
  Path wake;
  wake.Append(directory).Append(kWakeName);
  place.wake = MapWakePage(wake.text());
}

bool JoinPlace(ServicePlace& place, ClientOrigin origin) {
  if (place.wake == nullptr || place.socket_path[0] == 0)
    return false;
  // Before the service is asked: a session that begins meanwhile wakes once more.
  place.seen.store(place.wake->generation.load(std::memory_order_acquire),
                   std::memory_order_relaxed);
  memcpy(g_session.socket_path, place.socket_path, sizeof(place.socket_path));
  return Connect(g_session, origin);
}

}  // namespace

void OpenServicePlaces() {
  if (const char* directory = FindVariable(kDirectoryVariable)) {
    OpenPlace(g_service_places[0], directory);
    return;
  }
  OpenPlace(g_service_places[0], UserDirectory().text());
  OpenPlace(g_service_places[1], kSystemDirectory);
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
  const char* value = FindVariable(kBlockingVariable);
  if (value == nullptr || value[0] != '1' || g_service_places[0].wake == nullptr)
    return false;
  const timespec pause{.tv_sec = 0, .tv_nsec = 2'000'000};
  while (true) {
    if (IsWoken() && JoinService(/*was_dormant=*/false))
      return true;
    rt::Syscall(SYS_nanosleep, rt::ToArg(&pause));
  }
}

}  // namespace heapprofd
