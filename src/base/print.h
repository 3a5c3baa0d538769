// The only way to a terminal: what programs, files, sockets and the environment have
// named cannot steer it.
#pragma once

#include <cstdio>

#include "base/status.h"

namespace heapprofd {

// Formats as fprintf does and writes PrintableLines() of that.
void Print(FILE* output, const char* format, ...) __attribute__((format(printf, 2, 3)));

// What was printed to standard output may wait in a buffer for a disk that is full.
Status FlushOutput();

}  // namespace heapprofd
