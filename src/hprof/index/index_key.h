// Which bytes an index is of.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"
#include "hprof/index/index_format.h"
#include "hprof/mapped_input.h"

namespace heapprofd::hprof {

// Without what was asked of the dump. kUnavailable: the bytes are those of a copy, so that
// nobody would find their index again.
Result<IndexKey> KeyOf(const MappedInput& input);

// Of the header without it, and of the sections that are read as a whole.
uint64_t CheckOf(IndexHeader header, std::span<const std::string_view> sections);

}  // namespace heapprofd::hprof
