// Text in columns and lines of a terminal.
#pragma once

#include <cstddef>
#include <string>

namespace heapprofd {

// "05:07": minutes and seconds.
std::string ClockText(double seconds);

// That UTF-8 text takes on a terminal: two for characters of East Asia, none for those
// that are put onto another. By the locale, as far as one was chosen.
size_t Columns(const std::string& text);

// With blanks behind it up to `width`.
std::string Pad(const std::string& text, size_t width);

// At most `width` columns, the last three dots when something is missing.
std::string Cut(const std::string& text, size_t width);

// Breaks `text`, which begins in column `indent`, at blanks so that no line is longer
// than `width`; further lines begin with `indent` blanks. Longer words stay whole.
std::string Wrap(const std::string& text, size_t indent, size_t width);

// The last lines of a summary: "  trace  PATH  (what it is for)". What it is for is left
// out when it does not fit behind the path, which is never broken. `width` 0: any.
std::string FileLine(const std::string& kind,
                     const std::string& path,
                     const std::string& use,
                     size_t width);

// Whether the locale's characters are those of UTF-8.
bool TerminalShowsUnicode();

// Of the terminal behind a descriptor; 0: it is none, or does not say.
size_t TerminalWidth(int fd);

}  // namespace heapprofd
