// The other way to read debug information: llvm-symbolizer from PATH, asked as Perfetto
// asks it. One process, one question per line:
//
//   "/path/to/file" 0x1234
//
// and one JSON object per line back, in the same order:
//
//   {"Symbol":[{"FunctionName":"f","FileName":"/src/a.cc","Line":7,...},...],...}
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "profile/model.h"

namespace heapprofd {

// Path of the program; kInvalidArgument when there is none in PATH.
Result<std::string> FindLlvmSymbolizer();

// Lines of each address of the file behind `fd`, innermost first; empty: unknown.
// kUnavailable: the program could not be run, ended before it had answered, or took too
// long, which a file may have been made for.
Result<std::vector<std::vector<SourceLine>>> AskLlvmSymbolizer(
    const std::string& program,
    int fd,
    std::span<const uint64_t> addresses,
    uint64_t patience_ns = 120'000'000'000);

// One answer. Nothing when it is none; no lines for an address that is not known.
std::optional<std::vector<SourceLine>> ParseLlvmAnswer(std::string_view json);

}  // namespace heapprofd
