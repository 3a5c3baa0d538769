#include "base/print.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <string>

#include "base/text.h"

namespace heapprofd {
namespace {

// Of the first write to standard output that failed: no later call tells its cause.
int g_output_errno = 0;

void Write(FILE* output, std::string_view text) {
  fwrite(text.data(), 1, text.size(), output);
  if (output == stdout && ferror(stdout) != 0 && g_output_errno == 0)
    g_output_errno = errno;  // glibc counts what did not fit its buffer as written
}

// `format` with `mark` for its line ends, formatted; empty: there is no memory.
std::string Formatted(std::string format, char mark, va_list arguments) {
  std::ranges::replace(format, '\n', mark);
  char* text = nullptr;
  va_list own;
  va_copy(own, arguments);
  const int length = vasprintf(&text, format.c_str(), own);
  va_end(own);
  if (length < 0)
    return "";
  std::string formatted(text, static_cast<size_t>(length));
  free(text);
  return formatted;
}

}  // namespace

// The line ends of the format are where two marks for them differ.
void Print(FILE* output, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const std::string text = Formatted(format, '\1', arguments);
  const std::string other = Formatted(format, '\2', arguments);
  va_end(arguments);
  std::string printable;
  size_t begin = 0;
  for (size_t at = 0; at < std::min(text.size(), other.size()); ++at) {
    if (text[at] == other[at])
      continue;
    printable += Printable(std::string_view(text).substr(begin, at - begin)) + "\n";
    begin = at + 1;
  }
  Write(output, printable + Printable(std::string_view(text).substr(begin)));
}

void PrintLines(FILE* output, std::string_view text) {
  Write(output, PrintableLines(text));
}

void PrintData(std::string_view text) {
  static const bool is_terminal = isatty(STDOUT_FILENO) != 0;
  Write(stdout, is_terminal ? PrintableLines(text) : std::string(text));
}

void PrintText(std::string_view text) {
  Write(stdout, text);
}

Status FlushOutput() {
  if (fflush(stdout) != 0 && g_output_errno == 0)
    g_output_errno = errno;
  if (g_output_errno == 0 && ferror(stdout) == 0)
    return {};
  return Status::FromErrno("cannot write to standard output", g_output_errno);
}

}  // namespace heapprofd
