// Small text conversions that messages and formats share.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace heapprofd {

// Lower-case hexadecimal digits of `bytes`, two per byte: the usual form of a build id.
std::string HexEncode(std::string_view bytes);

// `text` with '?' for every control character, every character that changes the order of
// the text or cannot be seen, and every byte that is no UTF-8: names come from programs
// and files, and nothing of them may steer a terminal or look like another name.
std::string Printable(std::string_view text);

// The same for text of several lines, whose ends stay.
std::string PrintableLines(std::string_view text);

// `text` as one word of a POSIX shell, in single quotes.
std::string ShellQuoted(const std::string& text);

// `text` without the characters of `blanks` at its ends, always a part of it.
constexpr std::string_view Trimmed(std::string_view text, std::string_view blanks) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

// What comes behind the last '/' of `path`.
constexpr std::string_view FileName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace heapprofd
