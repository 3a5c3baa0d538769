// Small text conversions that messages and formats share.
#pragma once

#include <string>
#include <string_view>

namespace heapprofd {

// Lower-case hexadecimal digits of `bytes`, two per byte: the usual form of a build id.
std::string HexEncode(std::string_view bytes);

// `text` with '?' for every control character: names come from programs and files, and
// nothing of them may steer a terminal.
std::string Printable(std::string_view text);

// The same for text of several lines, whose ends stay.
std::string PrintableLines(std::string_view text);

}  // namespace heapprofd
