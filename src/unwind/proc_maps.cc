#include "unwind/proc_maps.h"

#include <charconv>
#include <optional>

namespace heapprofd {
namespace {

// Takes a hexadecimal or decimal number off the front of `text`, and then the character
// `after`.
bool TakeNumber(std::string_view& text, int base, char after, uint64_t* value) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), *value, base);
  if (error != std::errc() || end == text.data() + text.size() || *end != after)
    return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
  return true;
}

std::optional<MapEntry> ParseLine(std::string_view line, MapDetail detail) {
  constexpr std::string_view kDeleted = " (deleted)";
  MapEntry entry;
  uint64_t major = 0;
  uint64_t minor = 0;
  if (!TakeNumber(line, 16, '-', &entry.start) ||
      !TakeNumber(line, 16, ' ', &entry.end) || line.size() < 5 ||
      entry.start >= entry.end)
    return std::nullopt;
  entry.readable = line[0] == 'r';
  entry.writable = line[1] == 'w';
  entry.executable = line[2] == 'x';
  if (detail == MapDetail::kOfCode && !entry.executable)
    return entry;
  line.remove_prefix(5);
  if (!TakeNumber(line, 16, ' ', &entry.offset) || !TakeNumber(line, 16, ':', &major) ||
      !TakeNumber(line, 16, ' ', &minor))
    return std::nullopt;
  entry.device = major << 20 | minor;
  const auto [end, error] =
      std::from_chars(line.data(), line.data() + line.size(), entry.inode);
  if (error != std::errc())
    return std::nullopt;
  line.remove_prefix(static_cast<size_t>(end - line.data()));
  const size_t path = line.find_first_not_of(' ');
  if (path != std::string_view::npos)
    entry.path = line.substr(path);
  if (entry.inode != 0 && entry.path.ends_with(kDeleted)) {
    entry.path.resize(entry.path.size() - kDeleted.size());
    entry.is_deleted = true;
  }
  return entry;
}

}  // namespace

void ForEachMapping(std::string_view text,
                    MapDetail detail,
                    const std::function<void(MapEntry&)>& each) {
  for (size_t end = 0; (end = text.find('\n')) != std::string_view::npos;
       text.remove_prefix(end + 1)) {
    if (std::optional<MapEntry> entry = ParseLine(text.substr(0, end), detail))
      each(*entry);
  }
}

std::vector<MapEntry> ParseMaps(std::string_view text) {
  std::vector<MapEntry> entries;
  while (!text.empty() && entries.size() < kMaxMapEntries) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (std::optional<MapEntry> entry = ParseLine(text.substr(0, end), MapDetail::kOfAll))
      entries.push_back(std::move(*entry));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return entries;
}

}  // namespace heapprofd
