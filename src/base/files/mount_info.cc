#include "base/files/mount_info.h"

#include <algorithm>
#include <charconv>

namespace heapprofd {
namespace {

std::string_view TakeField(std::string_view* line, char end = ' ') {
  const size_t at = std::min(line->find(end), line->size());
  const std::string_view field = line->substr(0, at);
  line->remove_prefix(std::min(at + 1, line->size()));
  return field;
}

std::string Unescaped(std::string_view text) {
  std::string plain;
  bool is_plain = false;
  while (!text.empty())
    plain += TakeMountCharacter(&text, &is_plain);
  return plain;
}

bool ParseLine(std::string_view line, Mount* mount) {
  const std::string_view id = TakeField(&line);
  TakeField(&line);  // the parent's
  mount->device = TakeField(&line);
  TakeField(&line);  // what of the file system is mounted
  mount->point = Unescaped(TakeField(&line));
  while (!line.empty() && TakeField(&line) != "-") {
  }
  mount->type = TakeField(&line);
  TakeField(&line);  // the source
  mount->options = TakeField(&line);
  return std::from_chars(id.data(), id.data() + id.size(), mount->id).ec == std::errc() &&
         mount->point.starts_with('/') && !mount->type.empty();
}

}  // namespace

char TakeMountCharacter(std::string_view* text, bool* is_plain) {
  unsigned char byte = 0;
  const char* digits = text->data() + 1;
  *is_plain = text->size() < 4 || (*text)[0] != '\\' ||
              std::from_chars(digits, digits + 3, byte, 8).ptr != digits + 3;
  const char taken = *is_plain ? (*text)[0] : static_cast<char>(byte);
  text->remove_prefix(*is_plain ? 1 : 4);
  return taken;
}

std::vector<Mount> ParseMountInfo(std::string_view text) {
  std::vector<Mount> mounts;
  while (!text.empty()) {
    Mount mount;
    if (ParseLine(TakeField(&text, '\n'), &mount))
      mounts.push_back(std::move(mount));
  }
  return mounts;
}

}  // namespace heapprofd
