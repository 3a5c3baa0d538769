#include "cli/text_layout.h"

#include <locale.h>
#include <sys/ioctl.h>
#include <wchar.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "base/text.h"

namespace heapprofd {
namespace {

// Characters that take no column can be as many as somebody likes.
constexpr size_t kMostBytesPerColumn = 16;

struct Character {
  size_t bytes = 1;
  size_t columns = 1;
};

// What is no UTF-8 takes a column per byte.
Character CharacterAt(const std::string& text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const size_t length = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (length == 1)
    return {};
  auto code = static_cast<wchar_t>(lead & (0xff >> (length + 1)));
  size_t bytes = 1;
  for (; bytes < length && at + bytes < text.size() && (text[at + bytes] & 0xc0) == 0x80;
       ++bytes)
    code = (code << 6) | (text[at + bytes] & 0x3f);
  const int columns = wcwidth(code);
  return {.bytes = bytes, .columns = columns < 0 ? 1 : static_cast<size_t>(columns)};
}

}  // namespace

std::string ClockText(double seconds) {
  std::array<char, 32> text{};
  const auto elapsed = static_cast<unsigned>(std::max(0.0, seconds));
  snprintf(text.data(), text.size(), "%02u:%02u", elapsed / 60, elapsed % 60);
  return text.data();
}

size_t Columns(const std::string& text) {
  size_t columns = 0;
  for (size_t at = 0; at < text.size();) {
    const Character character = CharacterAt(text, at);
    columns += character.columns;
    at += character.bytes;
  }
  return columns;
}

std::string Pad(const std::string& text, size_t width) {
  const size_t columns = Columns(text);
  return columns < width ? text + std::string(width - columns, ' ') : text;
}

std::string Cut(const std::string& text, size_t width) {
  const size_t dots = std::min<size_t>(width, 3);
  size_t columns = 0;
  size_t kept = 0;  // bytes that leave room for the dots
  for (size_t at = 0; at < text.size();) {
    const Character character = CharacterAt(text, at);
    columns += character.columns;
    at += character.bytes;
    if (columns > width || at > kMostBytesPerColumn * width)
      return text.substr(0, kept) + std::string(dots, '.');
    if (columns + dots <= width)
      kept = at;
  }
  return text;
}

std::string Wrap(const std::string& text, size_t indent, size_t width) {
  std::string wrapped;
  size_t column = indent;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const size_t columns = Columns(text.substr(at, end - at));
    if (column > indent && column + 1 + columns > width) {
      wrapped += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      wrapped += " ";
      ++column;
    }
    wrapped += text.substr(at, end - at);
    column += columns;
    at = end + 1;
  }
  return wrapped;
}

std::string FileLine(const std::string& kind,
                     const std::string& path,
                     const std::string& use,
                     size_t width) {
  const std::string line = "  " + kind + "  " + Printable(path);
  const bool has_room = width == 0 || Columns(line) + 2 + use.size() <= width;
  return line + (has_room ? "  " + use : "") + "\n";
}

bool TerminalShowsUnicode() {
  setlocale(LC_CTYPE, "");
  const char* locale = setlocale(LC_CTYPE, nullptr);
  return locale != nullptr &&
         (strstr(locale, "UTF-8") != nullptr || strstr(locale, "utf8") != nullptr);
}

size_t TerminalWidth(int fd) {
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace heapprofd
