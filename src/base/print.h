// The only way to a terminal: what programs, files, sockets and the environment have
// named cannot steer it.
#pragma once

#include <cstdio>
#include <string_view>

#include "base/status.h"

namespace heapprofd {

// Formats as fprintf does and writes Printable() of that. Only line ends of `format` itself
// are kept: an argument cannot begin a line of its own.
void Print(FILE* output, const char* format, ...) __attribute__((format(printf, 2, 3)));

// Writes PrintableLines() of text that has several lines. Names in it are Printable() already,
// or they could begin a line.
void PrintLines(FILE* output, std::string_view text);

// Writes what programs read, as JSON, to standard output: as it is, and to a terminal
// PrintableLines() of it.
void PrintData(std::string_view text);

// Text that nobody else has a part in, as it is, to standard output.
void PrintText(std::string_view text);

// What was printed to standard output may wait in a buffer for a disk that is full.
Status FlushOutput();

}  // namespace heapprofd
