// Where a verb writes its result: a new file that appears whole or not at all, or what is
// there and is no file: a device, a pipe, standard output.
#pragma once

#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/files/file_place.h"
#include "base/files/new_file.h"
#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

class OutputFile {
 public:
  // An existing file is replaced when Finish() succeeds.
  // A link and whatever else has the name are replaced, too: for what we have named.
  static Result<OutputFile> Create(const FilePlace& place);

  // The same of what the user has named: links are followed, and what is no file is
  // written into (OpenNamedOutput); "-" is standard output. A terminal gets text alone, with
  // nothing that could steer it.
  static Result<OutputFile> CreateNamed(const std::string& path);

  // Errors stick: Finish() reports them too.
  Status Write(std::string_view bytes);

  // Waits until the disk has what was written: for a file whose readers cannot tell that a
  // loss of power took a part of it away. Before Finish().
  Status Settle();

  Status Finish();

  bool is_terminal() const { return is_terminal_; }

 private:
  OutputFile(std::string path, ScopedFd stream, std::optional<NewFile> file)
      : path_(std::move(path)),
        stream_(std::move(stream)),
        file_(std::move(file)),
        is_terminal_(stream_.valid() && isatty(stream_.get()) != 0) {}

  Status Flush();
  void WriteOut(std::string_view bytes);

  std::string path_;
  ScopedFd stream_;
  std::optional<NewFile> file_;  // nullopt: it goes to the stream
  bool is_terminal_;
  std::string buffer_;
  Status status_;
};

}  // namespace heapprofd
