// The only way to a terminal: what programs, files, sockets and the environment have
// named cannot steer it.
#pragma once

#include <cstdio>
#include <string_view>

#include "base/status.h"

namespace heapprofd {

// Formats as fprintf does and writes PrintableLines() of that.
void Print(FILE* output, const char* format, ...) __attribute__((format(printf, 2, 3)));

// Text that nobody else has a part in, as it is, to standard output.
void PrintText(std::string_view text);

// What was printed to standard output may wait in a buffer for a disk that is full.
Status FlushOutput();

}  // namespace heapprofd
