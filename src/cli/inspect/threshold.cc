#include "cli/inspect/threshold.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "cli/flag_values.h"

namespace heapprofd {
namespace {

constexpr char kExample[] = "for example --fail-if 'peak>300MiB'";
constexpr char kExampleOfChange[] = "for example --fail-if 'live>+5%'";

bool IsCount(const std::string& figure) {
  return figure == "calls";
}

// What a number with this unit is multiplied by. Counts: as they are shown, "20.0 k" is
// 20,000. Bytes: as in --interval.
std::optional<uint64_t> ScaleOf(const std::string& unit, bool is_count) {
  if (!is_count)
    return ByteUnit(unit);
  return unit.size() > 1 ? std::nullopt : ByteUnit(unit + "B");
}

// "300", "1.5GiB", "5%" behind an optional sign.
std::optional<double> ParseBound(std::string text,
                                 bool is_count,
                                 bool of_change,
                                 bool* is_percent) {
  double sign = 1;
  if (of_change && (text.starts_with("+") || text.starts_with("-"))) {
    sign = text[0] == '-' ? -1 : 1;
    text.erase(0, 1);
  }
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] =
      std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (error != std::errc() || text.starts_with("-") || !std::isfinite(value))
    return std::nullopt;
  const std::string unit(rest, end);
  *is_percent = of_change && unit == "%";
  if (*is_percent)
    return sign * value;
  const std::optional<uint64_t> scale = ScaleOf(unit, is_count);
  return scale ? std::optional<double>(sign * value * static_cast<double>(*scale))
               : std::nullopt;
}

Verdict JudgeExcess(BoundedBytes excess, bool is_less) {
  if (is_less)
    excess = {.bytes = -excess.bytes, .low = -excess.high, .high = -excess.low};
  if (excess.high <= 0)
    return Verdict::kHolds;
  return excess.low > 0 ? Verdict::kExceeded : Verdict::kWithinError;
}

BoundedBytes Scaled(const BoundedBytes& figure, double factor) {
  BoundedBytes scaled{.bytes = figure.bytes * factor,
                      .low = figure.low * factor,
                      .high = figure.high * factor};
  if (factor < 0)
    std::swap(scaled.low, scaled.high);
  return scaled;
}

BoundedBytes Shifted(const BoundedBytes& figure, double by) {
  return {.bytes = figure.bytes + by, .low = figure.low + by, .high = figure.high + by};
}

}  // namespace

Result<Threshold> ParseThreshold(const std::string& text,
                                 const std::vector<std::string>& figures,
                                 bool of_change) {
  const auto refused = [&](const std::string& cause) {
    return Invalid("cannot use --fail-if " + text + ": " + cause + "; " +
                   (of_change ? kExampleOfChange : kExample));
  };
  const size_t at = text.find_first_of("<>");
  if (at == std::string::npos)
    return refused("it has neither > nor <");
  Threshold threshold;
  threshold.text = text;
  threshold.figure = text.substr(0, at);
  threshold.is_less = text[at] == '<';
  if (std::find(figures.begin(), figures.end(), threshold.figure) == figures.end()) {
    std::string list;
    for (const std::string& figure : figures)
      list += (list.empty() ? "" : ", ") + figure;
    return refused("the figures are " + list);
  }
  const std::optional<double> bound = ParseBound(
      text.substr(at + 1), IsCount(threshold.figure), of_change, &threshold.is_percent);
  if (!bound)
    return refused(of_change ? "what follows is no size, number or percentage"
                             : "what follows is no size or number");
  threshold.bound = *bound;
  return threshold;
}

ApplyValue ThresholdValue(std::vector<Threshold>* thresholds,
                          const std::vector<std::string>& figures,
                          bool of_change) {
  return [thresholds, figures, of_change](const std::string& text) {
    HPD_TRY_ASSIGN(Threshold threshold, ParseThreshold(text, figures, of_change));
    thresholds->push_back(std::move(threshold));
    return Status();
  };
}

BoundedBytes Difference(const BoundedBytes& b, const BoundedBytes& a) {
  const double difference = b.bytes - a.bytes;
  return {.bytes = difference,
          .low = difference - std::hypot(b.bytes - b.low, a.high - a.bytes),
          .high = difference + std::hypot(b.high - b.bytes, a.bytes - a.low)};
}

Verdict Judge(const Threshold& threshold, const BoundedBytes& figure) {
  return JudgeExcess(Shifted(figure, -threshold.bound), threshold.is_less);
}

Verdict JudgeChange(const Threshold& threshold,
                    const BoundedBytes& before,
                    const BoundedBytes& after) {
  if (threshold.is_percent)
    return JudgeExcess(Difference(after, Scaled(before, 1 + threshold.bound / 100)),
                       threshold.is_less);
  return JudgeExcess(Shifted(Difference(after, before), -threshold.bound),
                     threshold.is_less);
}

const char* VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHolds:
      return "holds";
    case Verdict::kWithinError:
      return "within the sampling error";
    case Verdict::kExceeded:
      break;
  }
  return "exceeded";
}

}  // namespace heapprofd
