// What a flag's value may be: functions that check the text behind a flag and store what
// it means. Errors name the flag and the rule.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace heapprofd {

using ApplyValue = std::function<Status(const std::string&)>;

// What a number of bytes with this unit is multiplied by: "K" and "KiB" 1024, "KB" 1000,
// and so on with M, G and T, in either case; "" and "B" 1.
std::optional<uint64_t> ByteUnit(std::string_view unit);

// Plain number, or with such a unit: "4096", "4KiB", "8M".
std::optional<uint64_t> ParseSize(const std::string& text);

std::optional<uint64_t> ParseNumber(const std::string& text, uint64_t max);

// Parts between commas; empty ones are dropped.
std::vector<std::string> SplitList(const std::string& text);

// For flags without a value.
ApplyValue Switch(bool* target, bool value = true);

// `rule` ends the message "cannot use FLAG VALUE: it must be ".
ApplyValue SizeValue(const std::string& flag, uint64_t* target, const std::string& rule);

// "500ms", "90s", "30min", "2h", or "0".
ApplyValue DurationValue(const std::string& flag, std::chrono::milliseconds* target);

template <typename T>
ApplyValue NumberValue(const std::string& flag,
                       T* target,
                       uint64_t max,
                       const std::string& rule) {
  return [flag, target, max, rule](const std::string& text) {
    const std::optional<uint64_t> value = ParseNumber(text, max);
    if (!value)
      return Status(StatusCode::kInvalidArgument,
                    "cannot use " + flag + " " + text + ": it must be " + rule);
    *target = static_cast<T>(*value);
    return Status();
  };
}

// At least one name; several flags add up.
ApplyValue ListValue(const std::string& flag, std::vector<std::string>* target);

// Process ids, separated by commas.
ApplyValue PidList(const std::string& flag, std::vector<pid_t>* target);

// Anything but nothing.
ApplyValue TextValue(const std::string& flag, std::string* target);

}  // namespace heapprofd
