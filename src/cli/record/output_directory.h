// The directory that a recording's files go to. It is opened when it is made or looked at:
// whatever its path leads to later, this is where all of them go.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/files/file_place.h"
#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

class OutputDirectory {
 public:
  // `requested` is created when missing and must be empty; "" makes a fresh directory
  // under $TMPDIR or /tmp and points the link heap_profile-latest beside it to it, for root
  // only where no other user could. Only its owner may enter. Root uses no directory that
  // others may change.
  static Result<OutputDirectory> Create(const std::string& requested);

  // The same for the results of a conversion: `requested` may hold files, and there is no
  // link.
  static Result<OutputDirectory> Use(const std::string& requested);

  // One that somebody else has opened. `path`: what it is called.
  OutputDirectory(ScopedFd directory, std::string path)
      : path_(std::move(path)), directory_(std::move(directory)) {}

  // As its user knows it.
  const std::string& path() const { return path_; }

  // Of those with another working directory it is called so.
  void set_path(std::string path) { path_ = std::move(path); }

  // Open for nothing but to name files in it (O_PATH).
  int fd() const { return directory_.get(); }

  // Of a file in it, for this process and those that are forked from it.
  FilePlace Place(const std::string& name) const;

  // The same for programs that are started while this lives: the path itself, unless
  // others could lead root elsewhere by that. "": of the directory.
  std::string PathForPrograms(const std::string& name) const;

  // What such a program has said, with the path that its user knows.
  std::string Told(std::string text) const;

  // Nothing was recorded: nobody needs it, nor its raw-trace. Its link leads to the one
  // before again.
  void Remove() const;

  void RemoveIfEmpty() const;

 private:
  static Result<OutputDirectory> MakeFresh(bool with_link);
  static Result<OutputDirectory> MakeOrOpen(const std::string& path);

  std::string PrefixForPrograms() const;

  std::string path_;
  ScopedFd directory_;
  ScopedFd parent_;   // that it has its name in; invalid: it is others' to remove
  std::string name_;  // there
  // Where the link led before this one was made; nullopt: it has no link.
  std::optional<std::string> latest_before_;
};

}  // namespace heapprofd
