// Which Debian package a file of this machine belongs to: a module without symbols gets
// them from that package's debug symbols, and people ask for packages by name.
#pragma once

#include <optional>
#include <string>

namespace heapprofd {

inline constexpr char kPackageLists[] = "/var/lib/dpkg/info";

// "libfoo1" for /usr/lib/x86_64-linux-gnu/libfoo.so.1.0, by the lists of files that dpkg
// keeps in `lists`. Nothing when no package has brought the file.
std::optional<std::string> DebianPackageOf(const std::string& path,
                                           const std::string& lists = kPackageLists);

}  // namespace heapprofd
