// Where a verb writes its result: a new file that appears whole or not at all, or
// standard output.
#pragma once

#include <string>
#include <string_view>

#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

class OutputFile {
 public:
  // "-" is standard output. An existing file is replaced when Finish() succeeds.
  static Result<OutputFile> Create(const std::string& path);

  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  // Errors stick: Finish() reports them too.
  Status Write(std::string_view bytes);

  Status Finish();

 private:
  OutputFile(ScopedFd fd, std::string path, std::string temporary);
  Status Flush();
  void WriteOut(std::string_view bytes);

  ScopedFd fd_;
  std::string path_;
  std::string temporary_;  // empty: there is none, or no longer
  std::string buffer_;
  Status status_;
};

}  // namespace heapprofd
