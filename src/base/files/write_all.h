// All bytes to a descriptor, however few of them the kernel takes at once.
#pragma once

#include <string_view>

namespace heapprofd {

// 0, or errno of what ended it; EIO when nothing more is taken and nobody says why.
int WriteAll(int fd, std::string_view bytes);

}  // namespace heapprofd
