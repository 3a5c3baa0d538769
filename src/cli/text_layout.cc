#include "cli/text_layout.h"

#include <locale.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "base/text.h"
#include "base/utf8.h"

namespace heapprofd {

std::string ClockText(double seconds) {
  std::array<char, 32> text{};
  const auto elapsed = static_cast<unsigned>(std::max(0.0, seconds));
  snprintf(text.data(), text.size(), "%02u:%02u", elapsed / 60, elapsed % 60);
  return text.data();
}

size_t Columns(const std::string& text) {
  // Continuation bytes of UTF-8 take no column.
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string Pad(const std::string& text, size_t width) {
  const size_t columns = Columns(text);
  return columns < width ? text + std::string(width - columns, ' ') : text;
}

std::string Cut(const std::string& text, size_t width) {
  if (text.size() <= width)
    return text;
  return std::string(CutUtf8(text, width - 3)) + "...";
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
