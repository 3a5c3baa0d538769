// Texts that a target has put into shared memory or a record.
#pragma once

#include <cstddef>
#include <string>

namespace heapprofd {

// At most `size` - 1 bytes up to a zero, made valid UTF-8; control characters become '_'.
std::string TextFromTarget(const char* bytes, size_t size);

}  // namespace heapprofd
