#include "symbolize/symbol_answers.h"

#include <algorithm>

#include "base/byte_reader.h"

namespace heapprofd {
namespace {

// One address can stand for few bytes and many lines; no compiler inlines that deep.
constexpr uint32_t kMaxLinesPerAddress = 4096;
// Sums of lines that are shared between addresses are bounded by this.
constexpr uint64_t kMaxLinesInAll = 64'000'000;

// Encoded as they are.
static_assert(sizeof(SymbolAnswers::Line) == 16);

}  // namespace

SymbolAnswers::TextId SymbolAnswers::Intern(std::string_view text) {
  if (ids_.size() < texts_.size()) {  // decoded
    for (TextId id = 0; id < texts_.size(); ++id)
      ids_.try_emplace(texts_[id], id);
  }
  const auto known = ids_.find(text);
  if (known != ids_.end())
    return known->second;
  const auto id = static_cast<TextId>(texts_.size());
  ids_.emplace(texts_.emplace_back(interned_.emplace_back(text)), id);
  return id;
}

void SymbolAnswers::Add(uint64_t address, std::span<const Line> lines) {
  lines = lines.first(std::min<size_t>(lines.size(), kMaxLinesPerAddress));
  const Answer answer{.first = static_cast<uint32_t>(lines_.size()),
                      .count = static_cast<uint32_t>(lines.size())};
  if (answers_.try_emplace(address, answer).second)
    lines_.insert(lines_.end(), lines.begin(), lines.end());
}

std::optional<std::span<const SymbolAnswers::Line>> SymbolAnswers::Find(
    uint64_t address) const {
  const auto found = answers_.find(address);
  if (found == answers_.end())
    return std::nullopt;
  return std::span(lines_).subspan(found->second.first, found->second.count);
}

std::vector<SourceLine> SymbolAnswers::ToSourceLines(std::span<const Line> lines) const {
  std::vector<SourceLine> result;
  result.reserve(lines.size());
  for (const Line& line : lines)
    result.push_back({.function = std::string(texts_[line.function]),
                      .system_name = std::string(texts_[line.system_name]),
                      .file = std::string(texts_[line.file]),
                      .line = line.line});
  return result;
}

void SymbolAnswers::Copy(const SymbolAnswers& from,
                         uint64_t address,
                         std::span<const Line> lines) {
  std::vector<Line> copied(lines.begin(), lines.end());
  for (Line& line : copied) {
    for (TextId* id : {&line.function, &line.system_name, &line.file})
      *id = Intern(from.texts_[*id]);
  }
  Add(address, copied);
}

void SymbolAnswers::Merge(const SymbolAnswers& other) {
  for (const auto& [address, answer] : other.answers_) {
    if (!answers_.contains(address))
      Copy(other, address, std::span(other.lines_).subspan(answer.first, answer.count));
  }
}

SymbolAnswers SymbolAnswers::Subset(std::span<const uint64_t> addresses) const {
  SymbolAnswers subset;
  for (const uint64_t address : addresses) {
    if (const auto lines = Find(address))
      subset.Copy(*this, address, *lines);
  }
  return subset;
}

void SymbolAnswers::EncodeTo(std::string& contents) const {
  size_t size = 3 * sizeof(uint32_t) + lines_.size() * sizeof(Line) +
                answers_.size() * (sizeof(uint64_t) + sizeof(Answer));
  for (const std::string_view text : texts_)
    size += sizeof(uint32_t) + text.size();
  contents.reserve(contents.size() + size);
  AppendNumber(static_cast<uint32_t>(texts_.size()), contents);
  AppendNumber(static_cast<uint32_t>(lines_.size()), contents);
  AppendNumber(static_cast<uint32_t>(answers_.size()), contents);
  for (const std::string_view text : texts_) {
    AppendNumber(static_cast<uint32_t>(text.size()), contents);
    contents += text;
  }
  for (const Line& line : lines_)
    AppendNumber(line, contents);  // as it lies in memory: see the assertion above
  std::vector<std::pair<uint64_t, Answer>> sorted(answers_.begin(), answers_.end());
  std::ranges::sort(sorted, {}, [](const auto& item) { return item.first; });
  for (const auto& [address, answer] : sorted) {
    AppendNumber(address, contents);
    AppendNumber(answer.first, contents);
    AppendNumber(answer.count, contents);
  }
}

std::optional<SymbolAnswers> SymbolAnswers::Decode(std::string bytes, size_t start) {
  SymbolAnswers table;
  table.decoded_ = std::make_unique<const std::string>(std::move(bytes));
  ByteReader reader(std::string_view(*table.decoded_).substr(start));
  if (!table.DecodeContents(reader))
    return std::nullopt;
  return table;
}

// Nothing is reserved by a number that the input states: each element must be there.
bool SymbolAnswers::DecodeContents(ByteReader& reader) {
  const auto string_count = reader.Read<uint32_t>();
  const auto line_count = reader.Read<uint32_t>();
  const auto address_count = reader.Read<uint32_t>();
  for (uint32_t i = 0; i < string_count && reader.ok(); ++i) {
    const auto size = reader.Read<uint32_t>();
    texts_.emplace_back(reader.ReadBytes(size));
  }
  for (uint32_t i = 0; i < line_count && reader.ok(); ++i) {
    const auto line = reader.Read<Line>();
    if (std::max({line.function, line.system_name, line.file}) >= texts_.size())
      return false;
    lines_.push_back(line);
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
