#include "cli/flag_values.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>
#include <utility>

namespace heapprofd {

std::optional<uint64_t> ByteUnit(std::string_view unit) {
  constexpr std::string_view kLetters = "KMGT";
  if (unit.empty() || unit == "B")
    return 1;
  const size_t power =
      kLetters.find(static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0]))));
  const std::string_view rest = unit.substr(1);
  if (power == std::string_view::npos || (!rest.empty() && rest != "iB" && rest != "B"))
    return std::nullopt;
  const uint64_t step = rest == "B" ? 1000 : 1024;
  uint64_t bytes = step;
  for (size_t i = 0; i < power; ++i)
    bytes *= step;
  return bytes;
}

std::optional<uint64_t> ParseSize(const std::string& text) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [unit, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || unit == text.data())
    return std::nullopt;
  const std::optional<uint64_t> scale = ByteUnit({unit, end});
  if (!scale || value > UINT64_MAX / *scale)
    return std::nullopt;
  return value * *scale;
}

std::optional<uint64_t> ParseNumber(const std::string& text, uint64_t max) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || value > max)
    return std::nullopt;
  return value;
}

// Parts between commas; empty ones are dropped.
std::vector<std::string> SplitList(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    if (comma > at)
      parts.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

ApplyValue Switch(bool* target, bool value) {
  return [target, value](const std::string&) {
    *target = value;
    return Status();
  };
}

ApplyValue SizeValue(const std::string& flag, uint64_t* target, const std::string& rule) {
  return [flag, target, rule](const std::string& text) {
    const std::optional<uint64_t> value = ParseSize(text);
    if (!value)
      return Invalid("cannot use " + flag + " " + text + ": it must be " + rule);
    *target = *value;
    return Status();
  };
}

ApplyValue DurationValue(const std::string& flag, std::chrono::milliseconds* target) {
  return [flag, target](const std::string& text) {
    constexpr std::pair<std::string_view, uint64_t> kUnits[] = {
        {"ms", 1}, {"s", 1000}, {"min", 60'000}, {"h", 3'600'000}};
    constexpr uint64_t kMostMs = uint64_t{366} * 24 * 3'600'000;
    const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const std::optional<uint64_t> value = ParseNumber(text.substr(0, digits), kMostMs);
    const std::string unit = text.substr(digits);
    for (const auto& [name, ms] : kUnits) {
      if (value && *value * ms <= kMostMs && (unit == name || text == "0")) {
        *target = std::chrono::milliseconds(*value * ms);
        return Status();
      }
    }
    return Invalid(
        "cannot use " + flag + " " + text +
        ": it must be a time like 500ms, 90s, 30min or 2h, and at most a year");
  };
}

ApplyValue ListValue(const std::string& flag, std::vector<std::string>* target) {
  return [flag, target](const std::string& text) {
    const std::vector<std::string> parts = SplitList(text);
    if (parts.empty())
      return Invalid("cannot use " + flag + ": it needs at least one name");
    target->insert(target->end(), parts.begin(), parts.end());
    return Status();
  };
}

ApplyValue PidList(const std::string& flag, std::vector<pid_t>* target) {
  return [flag, target](std::string text) {
    // As pidof and pgrep separate them.
    std::ranges::replace_if(
        text, [](char c) { return c == ' ' || c == '\n'; }, ',');
    const std::vector<std::string> parts = SplitList(text);
    if (parts.empty())
      return Invalid("cannot use " + flag + ": it needs at least one process id");
    std::string invalid;
    for (const std::string& part : parts) {
      const uint64_t pid = ParseNumber(part, INT32_MAX).value_or(0);
      if (pid == 0)
        invalid += (invalid.empty() ? "" : ", ") + part;
      target->push_back(static_cast<pid_t>(pid));
    }
    return invalid.empty() ? Status()
                           : Invalid("cannot use " + flag + ": invalid PID " + invalid);
  };
}

ApplyValue TextValue(const std::string& flag, std::string* target) {
  return [flag, target](const std::string& text) {
    *target = text;
    return text.empty() ? Invalid("cannot use " + flag + ": the name is empty")
                        : Status();
  };
}

}  // namespace heapprofd
