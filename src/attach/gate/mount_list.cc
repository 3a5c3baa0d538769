#include "attach/gate/mount_list.h"

#include <algorithm>
#include <array>
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

std::vector<std::string> OverlayLayers(std::string_view options) {
  constexpr std::array<std::string_view, 5> kKeys = {"lowerdir", "lowerdir+", "datadir+",
                                                     "upperdir", "workdir"};
  std::vector<std::string> layers;
  std::string word;
  bool is_layer = false;
  bool is_known = false;
  while (!options.empty()) {
    bool is_plain = false;
    const char c = TakeMountCharacter(&options, &is_plain);
    const bool ends =
        options.empty() || (is_plain && (c == ',' || (is_layer && c == ':')));
    if (c == '\\' && !options.empty()) {  // before a colon that belongs to the name
      word += TakeMountCharacter(&options, &is_plain);
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
