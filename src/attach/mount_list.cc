#include "attach/mount_list.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_set>

namespace heapprofd {
namespace {

constexpr int kMaxOverlayDepth = 3;  // the kernel has two

constexpr std::array<std::string_view, 28> kLocal = {
    "ext2",     "ext3",     "ext4",   "xfs",      "btrfs", "f2fs",  "zfs",
    "bcachefs", "jfs",      "nilfs2", "reiserfs", "tmpfs", "ramfs", "rootfs",
    "devtmpfs", "squashfs", "erofs",  "cramfs",   "romfs", "ubifs", "jffs2",
    "minix",    "iso9660",  "udf",    "vfat",     "exfat", "ntfs3", "hfsplus"};

// Nobody's programs, but others may be mounted below: the kernel's own, or root's.
constexpr std::array<std::string_view, 18> kHarmless = {
    "proc",     "sysfs",   "cgroup",  "cgroup2", "devpts",    "mqueue",
    "bpf",      "debugfs", "tracefs", "pstore",  "configfs",  "securityfs",
    "efivarfs", "fusectl", "autofs",  "nsfs",    "hugetlbfs", "binfmt_misc"};

template <typename List>
bool Contains(const List& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

std::string_view TakeField(std::string_view* line, char end = ' ') {
  const size_t at = std::min(line->find(end), line->size());
  const std::string_view field = line->substr(0, at);
  line->remove_prefix(std::min(at + 1, line->size()));
  return field;
}

// Takes the next character, of which some are written as octal numbers: blanks and the
// like, and in options also those that would end them (`is_plain` is false).
char TakeCharacter(std::string_view* text, bool* is_plain) {
  unsigned char byte = 0;
  const char* digits = text->data() + 1;
  *is_plain = text->size() < 4 || (*text)[0] != '\\' ||
              std::from_chars(digits, digits + 3, byte, 8).ptr != digits + 3;
  const char taken = *is_plain ? (*text)[0] : static_cast<char>(byte);
  text->remove_prefix(*is_plain ? 1 : 4);
  return taken;
}

std::string Unescaped(std::string_view text) {
  std::string plain;
  bool is_plain = false;
  while (!text.empty())
    plain += TakeCharacter(&text, &is_plain);
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

// "/a/b" -> "/a" -> "/" -> "".
std::string_view Parent(std::string_view path) {
  const size_t slash = path.rfind('/');
  return path.size() <= 1 ? "" : path.substr(0, std::max(slash, size_t{1}));
}

// Finds out which mounts are local, those of `all`.
class Selection {
 public:
  Selection(const std::vector<Mount>& all, const FindMountOf& find)
      : all_(all), find_(find) {
    for (const Mount& mount : all) {
      if (!Contains(kHarmless, mount.type) && !Contains(kLocal, mount.type) &&
          mount.type != "overlay")
        foreign_.insert(mount.point);
    }
  }

  // Whether the way to a path leads through no file system that somebody else serves.
  // What lies hidden below such a one does, too.
  bool IsWayLocal(std::string_view path) const {
    for (; !path.empty(); path = Parent(path)) {
      if (foreign_.contains(std::string(path)))
        return false;
    }
    return true;
  }

  bool IsLocal(const Mount& mount, int depth) const {
    if (mount.type != "overlay")
      return Contains(kLocal, mount.type);
    const std::vector<std::string> layers = OverlayLayers(mount.options);
    return !layers.empty() && depth < kMaxOverlayDepth &&
           std::all_of(layers.begin(), layers.end(), [&](const std::string& layer) {
             return IsLayerLocal(layer, depth);
           });
  }

 private:
  bool IsLayerLocal(const std::string& path, int depth) const {
    if (!IsWayLocal(path))
      return false;
    const int id = find_(path);
    const auto found = std::find_if(all_.begin(), all_.end(),
                                    [id](const Mount& mount) { return mount.id == id; });
    return id != 0 && found != all_.end() && IsLocal(*found, depth + 1);
  }

  const std::vector<Mount>& all_;
  const FindMountOf& find_;
  std::unordered_set<std::string> foreign_;
};

}  // namespace

std::vector<Mount> ParseMountInfo(std::string_view text) {
  std::vector<Mount> mounts;
  while (!text.empty()) {
    Mount mount;
    if (ParseLine(TakeField(&text, '\n'), &mount))
      mounts.push_back(std::move(mount));
  }
  return mounts;
}

std::vector<std::string> OverlayLayers(std::string_view options) {
  constexpr std::array<std::string_view, 5> kKeys = {"lowerdir", "lowerdir+", "datadir+",
                                                     "upperdir", "workdir"};
  std::vector<std::string> layers;
  std::string word;
  bool is_layer = false;
  bool is_known = false;
  while (!options.empty()) {
    bool is_plain = false;
    const char c = TakeCharacter(&options, &is_plain);
    const bool ends =
        options.empty() || (is_plain && (c == ',' || (is_layer && c == ':')));
    if (c == '\\' && !options.empty()) {  // before a colon that belongs to the name
      word += TakeCharacter(&options, &is_plain);
    } else if (is_plain && c == '=' && !is_layer) {
      is_layer = Contains(kKeys, word);
      is_known |= word.starts_with("lowerdir");
      word.clear();
    } else if (!is_plain || (c != ',' && !(is_layer && c == ':'))) {
      word += c;
    }
    if (!ends)
      continue;
    if (is_layer && !word.empty())
      layers.push_back(word);
    word.clear();
    is_layer = is_layer && c != ',';
  }
  is_known = is_known && std::all_of(layers.begin(), layers.end(), [](const auto& layer) {
               return layer.starts_with('/');
             });
  return is_known ? layers : std::vector<std::string>();
}

std::vector<Mount> LocalMounts(const std::vector<Mount>& mounts,
                               const std::vector<Mount>& mounts_of_layers,
                               const FindMountOf& find) {
  const Selection here(mounts, find);
  const Selection layers(mounts_of_layers, find);
  std::vector<Mount> local;
  for (const Mount& mount : mounts) {
    if (here.IsWayLocal(mount.point) && layers.IsLocal(mount, 0))
      local.push_back(mount);
  }
  return local;
}

}  // namespace heapprofd
