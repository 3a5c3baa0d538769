// Which mounted file systems can be watched for programs that are executed: local ones
// alone. The kernel opens each program once more for whoever gives permission, and every
// exec of the machine would wait for an open that a server answers, or a program of some
// user. So the list says which may be, not which may not.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/mount_info.h"

namespace heapprofd {

// Directories that an overlay is made of; empty when they cannot be known.
std::vector<std::string> OverlayLayers(std::string_view options);

// Where a layer of an overlay lies: the mount's number as of the same list; 0: it cannot
// be found.
using FindMountOf = std::function<int(const std::string& path)>;

// The mounts that can be watched, of all in one namespace. `find`: asked for paths only
// that the list of mounts shows to be local.
std::vector<Mount> LocalMounts(const std::vector<Mount>& mounts,
                               const std::vector<Mount>& mounts_of_layers,
                               const FindMountOf& find);

}  // namespace heapprofd
