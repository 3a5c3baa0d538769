#include "jit/jit_names.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/byte_reader.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxName = 4096;                      // bytes
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 30;  // read of one file
constexpr size_t kMaxBody = size_t{1} << 20;           // read of one record
constexpr size_t kMaxLoads = 1'000'000;                // remembered for moves
// An address has a new name each time its place is used again.
constexpr uint64_t kMaxAssignments = 20'000'000;
constexpr uint32_t kJitdumpMagic = 0x4A695444;  // "JiTD"
constexpr uint64_t kHeaderSize = 40;
constexpr uint64_t kPrefixSize = 16;

struct CodeLoad {
  uint32_t pid;
  uint32_t tid;
  uint64_t vma;
  uint64_t address;
  uint64_t size;
  uint64_t index;
};

struct CodeMove {
  uint32_t pid;
  uint32_t tid;
  uint64_t vma;
  uint64_t old_address;
  uint64_t address;
  uint64_t size;
  uint64_t index;
};

// What is there of [offset, offset + size).
std::string ReadAt(int fd, uint64_t offset, uint64_t size) {
  std::string bytes(size, '\0');
  const ssize_t got = pread(fd, bytes.data(), size, static_cast<off_t>(offset));
  bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return bytes;
}

// Takes a hexadecimal number and the blanks behind it from the front.
bool TakeHex(std::string_view& text, uint64_t& value) {
  if (text.starts_with("0x"))
    text.remove_prefix(2);
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc())
    return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return true;
}

// Takes ":123" from the back.
bool TakeNumber(std::string_view& text, uint32_t& value) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == text.size())
    return false;
  const auto [end, error] =
      std::from_chars(text.data() + colon + 1, text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return false;
  text.remove_suffix(text.size() - colon);
  return true;
}

}  // namespace

SourceLine ParseJitName(std::string_view name) {
  constexpr std::array<std::string_view, 5> kKinds = {
      "JS:", "LazyCompile:", "Function:", "Script:", "Eval:"};
  SourceLine line{.function = std::string(name),
                  .system_name = std::string(name),
                  .file = "",
                  .line = 0};
  const auto kind = std::ranges::find_if(
      kKinds, [&](std::string_view prefix) { return name.starts_with(prefix); });
  if (kind == kKinds.end())
    return line;
  name.remove_prefix(kind->size());
  if (!name.empty() && std::string_view("~^+*").find(name[0]) != std::string_view::npos)
    name.remove_prefix(1);
  const size_t blank = name.find(' ');
  if (blank == std::string_view::npos)
    return line;
  std::string_view place = name.substr(blank + 1);
  uint32_t column = 0;
  uint32_t row = 0;
  if (!TakeNumber(place, column) || !TakeNumber(place, row))
    return line;
  line.function = blank == 0 ? "(anonymous)" : std::string(name.substr(0, blank));
  line.file = place;
  line.line = row;
  return line;
}

JitNames::JitNames(std::vector<uint64_t> pcs) : pcs_(std::move(pcs)) {
  std::ranges::sort(pcs_);
  pcs_.erase(std::unique(pcs_.begin(), pcs_.end()), pcs_.end());
  names_.resize(pcs_.size());
}

std::optional<SourceLine> JitNames::Find(uint64_t pc) const {
  const auto found = std::ranges::lower_bound(pcs_, pc);
  if (found == pcs_.end() || *found != pc)
    return std::nullopt;
  const SourceLine& name = names_[static_cast<size_t>(found - pcs_.begin())];
  if (name.function.empty())
    return std::nullopt;
  return name;
}

void JitNames::Assign(uint64_t start, uint64_t size, std::string_view name) {
  const auto first = std::ranges::lower_bound(pcs_, start);
  for (auto pc = first; pc != pcs_.end() && *pc - start < size; ++pc) {
    if (++assignments_ > kMaxAssignments)
      return;
    SourceLine& line = names_[static_cast<size_t>(pc - pcs_.begin())];
    line = ParseJitName(name.substr(0, kMaxName));
    if (lines_.empty())
      continue;
    const auto after = std::ranges::upper_bound(lines_, *pc, {}, &Position::pc);
    if (after == lines_.begin())
      continue;
    line.file = std::prev(after)->file;
    line.line = std::prev(after)->line;
  }
}

void JitNames::ReadPerfMap(int fd) {
  lines_.clear();
  std::string text;
  std::array<char, 65536> chunk;
  bool is_cut = false;  // the line was too long: its rest is left out
  for (uint64_t offset = 0; offset < kMaxFileBytes;) {
    const ssize_t got = pread(fd, chunk.data(), chunk.size(), static_cast<off_t>(offset));
    if (got <= 0)
      break;
    offset += static_cast<uint64_t>(got);
    std::string_view rest(chunk.data(), static_cast<size_t>(got));
    for (size_t end = 0; (end = rest.find('\n')) != std::string_view::npos;) {
      if (!is_cut)
        text += rest.substr(0, end);
      AddPerfMapLine(text);
      text.clear();
      is_cut = false;
      rest.remove_prefix(end + 1);
    }
    if (!is_cut)
      text += rest;
    is_cut = text.size() > 2 * kMaxName;
  }
  AddPerfMapLine(text);
}

void JitNames::AddPerfMapLine(std::string_view line) {
  uint64_t start = 0;
  uint64_t size = 0;
  if (TakeHex(line, start) && TakeHex(line, size) && !line.empty())
    Assign(start, size, line);
}

void JitNames::ReadJitdump(int fd) {
  const std::string header = ReadAt(fd, 0, kHeaderSize);
  ByteReader reader(header);
  const auto magic = reader.Read<uint32_t>();
  const auto version = reader.Read<uint32_t>();
  const auto header_size = reader.Read<uint32_t>();
  if (!reader.ok() || magic != kJitdumpMagic || version != 1)
    return;
  lines_.clear();
  loads_.clear();
  uint64_t offset = std::max<uint64_t>(header_size, kHeaderSize);
  while (offset < kMaxFileBytes && ReadRecord(fd, offset, &offset)) {
  }
  lines_.clear();
}

// False at the end.
bool JitNames::ReadRecord(int fd, uint64_t offset, uint64_t* next) {
  const std::string prefix = ReadAt(fd, offset, kPrefixSize);
  ByteReader reader(prefix);
  const auto kind = reader.Read<uint32_t>();
  const auto size = reader.Read<uint32_t>();
  if (prefix.size() < kPrefixSize || size < kPrefixSize)
    return false;
  *next = offset + size;
  const uint64_t body_size = size - kPrefixSize;
  const auto read_body = [&](size_t limit) {
    return ReadAt(fd, offset + kPrefixSize, std::min<uint64_t>(body_size, limit));
  };
  if (kind == 0)
    ReadLoad(offset, read_body(sizeof(CodeLoad) + kMaxName));
  else if (kind == 1)
    ReadMove(fd, read_body(sizeof(CodeMove)));
  else if (kind == 2)
    ReadLines(read_body(kMaxBody));
  return true;
}

void JitNames::ReadLoad(uint64_t offset, std::string_view body) {
  ByteReader reader(body);
  const auto load = reader.Read<CodeLoad>();
  const std::string_view name = reader.ReadCString();
  if (!reader.ok())
    return;
  if (lines_of_ != load.address)
    lines_.clear();
  Assign(load.address, load.size, name);
  lines_.clear();
  if (loads_.size() < kMaxLoads)
    loads_[load.index] = offset;
}

void JitNames::ReadMove(int fd, std::string_view body) {
  ByteReader reader(body);
  const auto move = reader.Read<CodeMove>();
  if (!reader.ok())
    return;
  const auto load = loads_.find(move.index);
  if (load == loads_.end())
    return;
  const std::string record =
      ReadAt(fd, load->second + kPrefixSize, sizeof(CodeLoad) + kMaxName);
  ByteReader load_reader(record);
  load_reader.Read<CodeLoad>();
  const std::string_view name = load_reader.ReadCString();
  lines_.clear();
  if (load_reader.ok())
    Assign(move.address, move.size, name);
}

void JitNames::ReadLines(std::string_view body) {
  ByteReader reader(body);
  lines_.clear();
  lines_of_ = reader.Read<uint64_t>();
  const auto count = reader.Read<uint64_t>();
  std::string file;
  for (uint64_t i = 0; i < count && reader.ok(); ++i) {
    const auto pc = reader.Read<uint64_t>();
    const auto line = reader.Read<uint32_t>();
    reader.Read<uint32_t>();
    const std::string_view name = reader.ReadCString();
    if (!reader.ok())
      break;
    if (name != "\xff")
      file = name.substr(0, kMaxName);
    lines_.push_back({.pc = pc, .file = file, .line = line});
  }
  std::ranges::stable_sort(lines_, {}, &Position::pc);
}

}  // namespace heapprofd
