// Compressed files, and compressed parts of files.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace heapprofd {

// `bytes`: at most 2 GiB. `level`: zlib's, from 1 (fast) to 9 (small); -1: its usual one.
std::string Gzip(std::string_view bytes, int level = -1);

// Compresses and writes `bytes` to a new file that only its owner can read. Never leaves
// half a file.
Status WriteGzipFile(const std::string& path, const std::string& bytes);

}  // namespace heapprofd
