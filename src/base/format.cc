#include "base/format.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace heapprofd {
namespace {

std::string Print(const char* format, double value, const char* unit) {
  std::array<char, 64> text{};
  snprintf(text.data(), text.size(), format, value, unit);
  return text.data();
}

// Three significant digits for values below 1000.
std::string ThreeDigits(double value, const char* unit) {
  if (value < 9.995)
    return Print("%.2f %s", value, unit);
  if (value < 99.95)
    return Print("%.1f %s", value, unit);
  return Print("%.0f %s", value, unit);
}

}  // namespace

std::string FormatBytes(double bytes) {
  constexpr std::array<const char*, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 0)
    return "-" + FormatBytes(-bytes);
  if (bytes < 1023.5)
    return Print("%.0f %s", bytes, "B");
  size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return ThreeDigits(bytes, kUnits[unit]);
}

std::string FormatCount(double count) {
  constexpr std::array<const char*, 5> kUnits = {"", "k", "M", "G", "T"};
  if (count < 0)
    return "-" + FormatCount(-count);
  if (count < 9999.5)
    return Print("%.0f%s", count, "");
  size_t unit = 0;
  while (count >= 999.5 && unit + 1 < kUnits.size()) {
    count /= 1000;
    ++unit;
  }
  return ThreeDigits(count, kUnits[unit]);
}

std::string FormatCounted(double count, const char* one, const char* many) {
  const std::string number = FormatCount(count);
  return number + " " + (number == "1" ? one : many);
}

std::string FormatDuration(double seconds) {
  if (seconds < 0.9995)
    return Print("%.0f %s", seconds * 1000, "ms");
  if (seconds < 119.95)
    return Print("%.1f %s", seconds, "s");
  const double minutes = std::floor(seconds / 60);
  return Print("%.0f %s", minutes, "min ") +
         Print("%.0f %s", std::floor(seconds - minutes * 60), "s");
}

std::string FormatShare(double part, double whole) {
  const double percent = whole != 0 ? 100 * part / whole : 0;
  return Print(std::abs(percent) < 9.95 && percent != 0 ? "%.1f%s" : "%.0f%s", percent,
               "%");
}

}  // namespace heapprofd
