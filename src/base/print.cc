#include "base/print.h"

#include <cerrno>
#include <cstdarg>
#include <cstdlib>

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

}  // namespace

void Print(FILE* output, const char* format, ...) {
  char* text = nullptr;
  va_list arguments;
  va_start(arguments, format);
  const int length = vasprintf(&text, format, arguments);
  va_end(arguments);
  if (length < 0)
    return;
  const std::string printable =
      PrintableLines(std::string_view(text, static_cast<size_t>(length)));
  free(text);
  Write(output, printable);
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
