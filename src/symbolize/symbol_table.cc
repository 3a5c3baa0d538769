#include "symbolize/symbol_table.h"

#include <algorithm>

#include "base/byte_reader.h"

namespace heapprofd {
namespace {

// One address can stand for few bytes and many lines; no compiler inlines that deep.
constexpr uint32_t kMaxLinesPerAddress = 4096;
// Sums of lines that are shared between addresses are bounded by this.
constexpr uint64_t kMaxLinesInAll = 64'000'000;

}  // namespace

uint32_t SymbolTable::Intern(const std::string& text) {
  const auto [entry, is_new] =
      ids_.try_emplace(text, static_cast<uint32_t>(strings_.size()));
  if (is_new)
    strings_.push_back(text);
  return entry->second;
}

void SymbolTable::Add(uint64_t address, std::span<const SourceLine> lines) {
  const Answer answer{.first = static_cast<uint32_t>(lines_.size()),
                      .count = static_cast<uint32_t>(
                          std::min<size_t>(lines.size(), kMaxLinesPerAddress))};
  if (!answers_.try_emplace(address, answer).second)
    return;
  for (const SourceLine& line : lines.first(answer.count))
    lines_.push_back({.function = Intern(line.function),
                      .system_name = Intern(line.system_name),
                      .file = Intern(line.file),
                      .line = line.line});
}

std::optional<std::vector<SourceLine>> SymbolTable::Find(uint64_t address) const {
  const auto found = answers_.find(address);
  if (found == answers_.end())
    return std::nullopt;
  std::vector<SourceLine> lines;
  lines.reserve(found->second.count);
  for (uint32_t i = 0; i < found->second.count; ++i) {
    const Line& line = lines_[found->second.first + i];
    lines.push_back({.function = strings_[line.function],
                     .system_name = strings_[line.system_name],
                     .file = strings_[line.file],
                     .line = line.line});
  }
  return lines;
}

std::string SymbolTable::Encode() const {
  std::string contents;
  AppendNumber(static_cast<uint32_t>(strings_.size()), contents);
  AppendNumber(static_cast<uint32_t>(lines_.size()), contents);
  AppendNumber(static_cast<uint32_t>(answers_.size()), contents);
  for (const std::string& text : strings_) {
    AppendNumber(static_cast<uint32_t>(text.size()), contents);
    contents += text;
  }
  for (const Line& line : lines_) {
    for (const uint32_t number : {line.function, line.system_name, line.file, line.line})
      AppendNumber(number, contents);
  }
  std::vector<std::pair<uint64_t, Answer>> sorted(answers_.begin(), answers_.end());
  std::ranges::sort(sorted, {}, [](const auto& item) { return item.first; });
  for (const auto& [address, answer] : sorted) {
    AppendNumber(address, contents);
    AppendNumber(answer.first, contents);
    AppendNumber(answer.count, contents);
  }
  return contents;
}

std::optional<SymbolTable> SymbolTable::Decode(std::string_view bytes) {
  ByteReader reader(bytes);
  SymbolTable table;
  if (!table.DecodeContents(reader))
    return std::nullopt;
  return table;
}

// Nothing is reserved by a number that the input states: each element must be there.
bool SymbolTable::DecodeContents(ByteReader& reader) {
  const auto string_count = reader.Read<uint32_t>();
  const auto line_count = reader.Read<uint32_t>();
  const auto address_count = reader.Read<uint32_t>();
  for (uint32_t i = 0; i < string_count && reader.ok(); ++i) {
    const auto size = reader.Read<uint32_t>();
    const std::string& text = strings_.emplace_back(reader.ReadBytes(size));
    ids_.try_emplace(text, i);
  }
  for (uint32_t i = 0; i < line_count && reader.ok(); ++i) {
    const auto function = reader.Read<uint32_t>();
    const auto system_name = reader.Read<uint32_t>();
    const auto file = reader.Read<uint32_t>();
    if (std::max({function, system_name, file}) >= strings_.size())
      return false;
    lines_.push_back({function, system_name, file, reader.Read<uint32_t>()});
  }
  uint64_t lines_in_all = 0;
  for (uint32_t i = 0; i < address_count && reader.ok(); ++i) {
    const auto address = reader.Read<uint64_t>();
    const auto first = reader.Read<uint32_t>();
    const auto count = reader.Read<uint32_t>();
    lines_in_all += count;
    if (first > lines_.size() || count > lines_.size() - first ||
        count > kMaxLinesPerAddress || lines_in_all > kMaxLinesInAll)
      return false;
    answers_.try_emplace(address, Answer{first, count});
  }
  return reader.ok() && reader.left() == 0;
}

}  // namespace heapprofd
