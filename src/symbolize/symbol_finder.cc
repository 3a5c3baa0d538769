#include "symbolize/symbol_finder.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/files/foreign_file.h"
#include "base/files/own_file.h"
#include "base/text.h"
#include "symbolize/elf_identity.h"

namespace heapprofd {
namespace {

constexpr std::string_view kApkPrefix = "base.apk!";
constexpr size_t kMaxRejected = 64;  // kept per module

std::string WithoutApkPrefix(const std::string& file) {
  return file.starts_with(kApkPrefix) ? file.substr(kApkPrefix.size()) : file;
}

// Whoever has made a trace has chosen the names in it: they stay below the root.
bool LeadsUp(const std::string& path) {
  return ("/" + path + "/").find("/../") != std::string::npos;
}

void Reject(RejectedFile file, std::vector<RejectedFile>* rejected) {
  if (rejected->size() < kMaxRejected)
    rejected->push_back(std::move(file));
}

}  // namespace

std::vector<std::string> PlacesBelow(const std::string& root,
                                     const std::string& path,
                                     const std::string& build_id) {
  if (LeadsUp(path))
    return {};
  const size_t slash = path.rfind('/');
  const std::string directory =
      slash == std::string::npos ? "" : path.substr(0, slash + 1);
  const std::string file = slash == std::string::npos ? path : path.substr(slash + 1);
  const std::string base = root + "/";
  const std::string below = root + (path.starts_with('/') ? "" : "/") + directory;
  std::vector<std::string> places = {below + file, below + WithoutApkPrefix(file),
                                     base + file, base + WithoutApkPrefix(file)};
  const std::string id = HexEncode(build_id);
  if (id.size() > 2)
    places.push_back(base + ".build-id/" + id.substr(0, 2) + "/" + id.substr(2) +
                     ".debug");
  std::vector<std::string> distinct;
  for (std::string& place : places) {
    if (std::ranges::find(distinct, place) == distinct.end())
      distinct.push_back(std::move(place));
  }
  return distinct;
}

namespace {

std::optional<FoundFile> TakeIfMatching(ScopedFd fd,
                                        const std::string& path,
                                        const std::string& build_id,
                                        WantedSymbols wanted,
                                        std::vector<RejectedFile>* rejected) {
  using Reason = RejectedFile::Reason;
  if (!fd.valid())
    return std::nullopt;
  const auto identity = IdentifyElf(fd.get());
  if (!identity) {
    Reject({path, Reason::kNotElf, ""}, rejected);
  } else if (identity->build_id != build_id) {
    Reject({path, Reason::kBuildIdMismatch, identity->build_id}, rejected);
  } else if (wanted == WantedSymbols::kDebugInfo && !identity->has_debug_info) {
    Reject({path, Reason::kNoDebugInfo, identity->build_id}, rejected);
  } else {
    return FoundFile{std::move(fd), path};
  }
  return std::nullopt;
}

}  // namespace

std::optional<FoundFile> OpenIfMatching(const std::string& path,
                                        const std::string& build_id,
                                        WantedSymbols wanted,
                                        std::vector<RejectedFile>* rejected) {
  return TakeIfMatching(OpenForeignPath(path), path, build_id, wanted, rejected);
}

void SymbolFinder::PrepareIndex() {
  if (mode_ == LookupMode::kIndex && has_roots() && index_ == nullptr)
    index_ = std::make_unique<BuildIdIndex>(roots_, cache_);
}

std::optional<FoundFile> SymbolFinder::Find(const std::string& path,
                                            const std::string& build_id,
                                            WantedSymbols wanted,
                                            std::vector<RejectedFile>* rejected) {
  if (build_id.empty() || roots_.empty())
    return std::nullopt;
  if (mode_ != LookupMode::kIndex) {
    for (const std::string& root : roots_) {
      for (const std::string& place : PlacesBelow(root, path, build_id)) {
        if (auto found =
                TakeIfMatching(OpenRegular(place), place, build_id, wanted, rejected))
          return found;
      }
    }
  }
  if (mode_ == LookupMode::kFind)
    return std::nullopt;
  if (index_ == nullptr)
    index_ = std::make_unique<BuildIdIndex>(roots_, cache_);
  for (const std::string& file : index_->Find(build_id)) {
    if (auto found = TakeIfMatching(OpenRegular(file), file, build_id, wanted, rejected))
      return found;
  }
  return std::nullopt;
}

}  // namespace heapprofd
