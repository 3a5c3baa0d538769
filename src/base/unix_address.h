// Addresses of sockets that have a name in the file system.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <optional>
#include <string>

namespace heapprofd {

// nullopt: the path is longer than an address may be (107 bytes).
inline std::optional<sockaddr_un> UnixAddress(const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof(address.sun_path))
    return std::nullopt;
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

}  // namespace heapprofd
