// Text of the profiled program, made fit for formats that demand UTF-8. Arguments, paths
// and symbols may hold any bytes; strict readers refuse a whole profile for one of them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace heapprofd {

// `text` with U+FFFD for every byte that is not part of well-formed UTF-8.
std::string ToUtf8(std::string_view text);

// At most `max_bytes` from the start of `text`, not cut within a character.
std::string_view CutUtf8(std::string_view text, size_t max_bytes);

}  // namespace heapprofd
