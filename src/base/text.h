// Small text conversions that messages and formats share.
#pragma once

#include <string>
#include <string_view>

namespace heapprofd {

// Lower-case hexadecimal digits of `bytes`, two per byte: the usual form of a build id.
std::string HexEncode(std::string_view bytes);

}  // namespace heapprofd
