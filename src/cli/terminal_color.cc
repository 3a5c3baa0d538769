#include "cli/terminal_color.h"

#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string_view>

namespace heapprofd {
namespace {

constexpr char kBold[] = "\033[1m";
constexpr char kYellow[] = "\033[33m";
constexpr char kPlain[] = "\033[m";
constexpr std::string_view kMark = "  ! ";

}  // namespace

bool ShowsColor(int fd) {
  const char* forbidden = getenv("NO_COLOR");
  const char* terminal = getenv("TERM");
  return isatty(fd) != 0 && (forbidden == nullptr || *forbidden == 0) &&
         terminal != nullptr && std::string_view(terminal) != "dumb";
}

std::string WithColor(const std::string& summary) {
  std::string text;
  std::istringstream lines(summary);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Recorded ") || line.starts_with("Profile of ") ||
        line.starts_with("  Top "))
      text += kBold + line + kPlain;
    else if (line.starts_with(kMark))
      text += kYellow + std::string(kMark) + kPlain + line.substr(kMark.size());
    else
      text += line;
    text += '\n';
  }
  return text;
}

}  // namespace heapprofd
