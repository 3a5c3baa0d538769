// Compressed files, and compressed parts of files.
#pragma once

#include <string>
#include <string_view>

#include "base/files/file_place.h"
#include "base/status.h"

namespace heapprofd {

// `bytes`: at most 2 GiB.
std::string Gzip(std::string_view bytes);

// Compresses and writes `bytes` to a new file that only its owner can read. Never leaves
// half a file.
Status WriteGzipFile(const FilePlace& place, const std::string& bytes);

}  // namespace heapprofd
