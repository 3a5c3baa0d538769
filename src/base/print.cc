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
  const std::string what = "cannot write to standard output";
  if (fflush(stdout) != 0)
    return Status::FromErrno(what, errno);
  return ferror(stdout) == 0 ? Status()
                             : Status(StatusCode::kUnavailable,
                                      what +
                                          ": a part of what was to be said is lost; "
                                          "look at where it goes, and try again");
}

}  // namespace heapprofd
