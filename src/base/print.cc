#include "base/print.h"

#include <cerrno>
#include <cstdarg>
#include <cstdlib>

#include "base/text.h"

namespace heapprofd {

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
  fwrite(printable.data(), 1, printable.size(), output);
}

Status FlushOutput() {
  return fflush(stdout) == 0 && ferror(stdout) == 0
             ? Status()
             : Status::FromErrno("cannot write to standard output", errno);
}

}  // namespace heapprofd
