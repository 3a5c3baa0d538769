// Numbers as people read them: IEC sizes, thousands, durations.
#pragma once

#include <cstdint>
#include <string>

namespace heapprofd {

// "0 B", "12.3 KiB", "1.50 GiB": three significant digits.
std::string FormatBytes(double bytes);

// "950", "22.1 k", "22.1 M".
std::string FormatCount(double count);

// "1 call", "22.1 k calls".
std::string FormatCounted(double count, const char* one, const char* many);

// "850 ms", "12.4 s", "3 min 20 s".
std::string FormatDuration(double seconds);

// "12%", "0.4%".
std::string FormatShare(double part, double whole);

}  // namespace heapprofd
