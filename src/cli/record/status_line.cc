#include "cli/record/status_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/text.h"

namespace heapprofd {
namespace {

constexpr uint16_t kMinRows = 4;
constexpr uint16_t kMinColumns = 20;

// Escape sequences of VT100, which every terminal of today understands.
constexpr char kSave[] = "\0337";
constexpr char kRestore[] = "\0338";
constexpr char kUp[] = "\033[A";
constexpr char kClearLine[] = "\033[K";

bool UnderstandsSequences() {
  const char* terminal = getenv("TERM");
  return terminal != nullptr && std::string_view(terminal) != "dumb";
}

winsize SizeOfTerminal() {
  winsize size{};
  ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
  return size;
}

std::string ScrollRows(unsigned rows) {
  return "\033[1;" + std::to_string(rows) + "r";
}

std::string ToRow(unsigned row) {
  return "\033[" + std::to_string(row) + ";1H";
}

void Write(const std::string& text) {
  fputs(text.c_str(), stderr);
  fflush(stderr);
}

}  // namespace

StatusLine::StatusLine(bool is_wanted)
    : is_wanted_(is_wanted && isatty(STDERR_FILENO) != 0 && UnderstandsSequences()) {}

// The line feed makes room when the cursor is in the last row. Setting the rows that
// scroll moves the cursor.
void StatusLine::Reserve(uint16_t rows) {
  Write(std::string("\n") + kSave + ScrollRows(rows - 1u) + kRestore + kUp);
  rows_ = rows;
}

void StatusLine::Show(const std::string& text) {
  if (!is_wanted_)
    return;
  const winsize size = SizeOfTerminal();
  if (size.ws_row < kMinRows || size.ws_col < kMinColumns)
    return;
  if (rows_ != size.ws_row)
    Reserve(size.ws_row);
  Write(kSave + ToRow(rows_) + Printable(text).substr(0, size.ws_col - 1u) + kClearLine +
        kRestore);
}

void StatusLine::Clear() {
  if (rows_ == 0)
    return;
  Write(kSave + ToRow(rows_) + kClearLine + "\033[r" + kRestore);
  rows_ = 0;
}

}  // namespace heapprofd
