// Where a verb writes its result: a new file that appears whole or not at all, or
// standard output.
#pragma once

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
  // "-" is standard output. An existing file is replaced when Finish() succeeds.
  static Result<OutputFile> Create(const FilePlace& place);

  // Errors stick: Finish() reports them too.
  Status Write(std::string_view bytes);

  // Waits until the disk has what was written: for a file whose readers cannot tell that a
  // loss of power took a part of it away. Before Finish().
  Status Settle();

  Status Finish();

 private:
  OutputFile(std::string path, ScopedFd standard_output, std::optional<NewFile> file)
      : path_(std::move(path)),
        stdout_(std::move(standard_output)),
        file_(std::move(file)) {}

  Status Flush();
  void WriteOut(std::string_view bytes);

  std::string path_;
  ScopedFd stdout_;
  std::optional<NewFile> file_;  // nullopt: standard output
  std::string buffer_;
  Status status_;
};

}  // namespace heapprofd
