// Names of programs that somebody waits for, and whether what is executed may be one of
// them. Asked for every exec of the machine, with names from whoever likes to send some:
// what it costs is bounded, and it may say yes too often, never no.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heapprofd {

// "/usr/bin/server@1.0" -> "server".
std::string_view NormalizedName(std::string_view argv0);

class ExecNames {
 public:
  static constexpr size_t kMaxCount = 1024;
  static constexpr size_t kMaxBytes = size_t{32} << 10;

  // A name, or with * in it a pattern as of fnmatch(3), of which only the * counts here:
  // with a leading / it is for the whole path, otherwise for the file name.
  void AddName(const std::string& name);

  // Exactly this file.
  void AddFile(const std::string& path);

  bool MayMatch(std::string_view path) const;

  size_t count() const { return items_.size(); }

  std::string Encode() const;

  // nullopt: more than the limits allow, or nothing that Encode could have made.
  static std::optional<ExecNames> Decode(std::string_view bytes);

 private:
  enum class Kind : char { kName = 'n', kPattern = 'p', kFile = 'f' };

  struct Item {
    Kind kind;
    std::string text;
  };

  std::vector<Item> items_;
};

}  // namespace heapprofd
