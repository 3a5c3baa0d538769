#include "attach/gate/exec_names.h"

#include <string.h>

#include <algorithm>

#include "base/text.h"

namespace heapprofd {
namespace {

constexpr char kVersion = '1';
constexpr std::string_view kSpecial = "*?[";  // of fnmatch(3)

// Whether the text has the pattern's literal parts in their order, the first one at its
// beginning: what fnmatch accepts, and more. Linear in both.
bool MayMatchPattern(std::string_view pattern, std::string_view text) {
  bool is_first = true;
  while (true) {
    const size_t end = std::min(pattern.find_first_of(kSpecial), pattern.size());
    const std::string_view part = pattern.substr(0, end);
    const void* found = is_first
                            ? (text.starts_with(part) ? text.data() : nullptr)
                            : memmem(text.data(), text.size(), part.data(), part.size());
    if (found == nullptr)
      return false;
    text.remove_prefix(
        static_cast<size_t>(static_cast<const char*>(found) - text.data()) + part.size());
    // What a bracket means is left to whoever looks more closely.
    if (end == pattern.size() || pattern[end] == '[')
      return true;
    pattern.remove_prefix(end + 1);
    is_first = false;
  }
}

}  // namespace

std::string_view NormalizedName(std::string_view argv0) {
  return FileName(argv0.substr(0, argv0.find('@')));
}

void ExecNames::AddName(const std::string& name) {
  if (name.find('*') != std::string::npos)
    items_.push_back({Kind::kPattern, name});
  else
    items_.push_back({Kind::kName, std::string(NormalizedName(name))});
}

void ExecNames::AddFile(const std::string& path) {
  items_.push_back({Kind::kFile, path});
}

bool ExecNames::MayMatch(std::string_view path) const {
  const std::string_view name = NormalizedName(path);
  return std::any_of(items_.begin(), items_.end(), [&](const Item& item) {
    switch (item.kind) {
      case Kind::kName:
        return item.text == name;
      case Kind::kFile:
        return item.text == path;
      case Kind::kPattern:
        return MayMatchPattern(item.text,
                               item.text.starts_with('/') ? path : FileName(path));
    }
    return false;
  });
}

std::string ExecNames::Encode() const {
  std::string bytes(1, kVersion);
  for (const Item& item : items_) {
    bytes += static_cast<char>(item.kind);
    bytes += item.text;
    bytes += '\0';
  }
  return bytes;
}

std::optional<ExecNames> ExecNames::Decode(std::string_view bytes) {
  ExecNames names;
  if (bytes.size() > kMaxBytes || !bytes.starts_with(kVersion))
    return std::nullopt;
  bytes.remove_prefix(1);
  while (!bytes.empty()) {
    const size_t end = bytes.find('\0');
    const char kind = bytes[0];
    if (end == std::string_view::npos || end == 0 || names.count() == kMaxCount ||
        (kind != 'n' && kind != 'p' && kind != 'f'))
      return std::nullopt;
    names.items_.push_back(
        {static_cast<Kind>(kind), std::string(bytes.substr(1, end - 1))});
    bytes.remove_prefix(end + 1);
  }
  return names;
}

}  // namespace heapprofd
