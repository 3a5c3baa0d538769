// What the page of `heap_profile view` asks its server: SQL, files for other programs,
// lines of source code. Nothing of it changes anything, and no request names a file.
#pragma once

#include <atomic>
#include <tuple>

#include <nlohmann/json_fwd.hpp>

#include "cli/inspect/opened_file.h"
#include "cli/view/source_lines.h"
#include "web/web_server.h"

namespace heapprofd {

class ViewApi {
 public:
  // What the file's warnings are now the page tells; later ones are in answers.
  explicit ViewApi(OpenedFile& file)
      : file_(file), told_warnings_(file.warnings.size()) {}

  // For one thread. Stops when the database's cancel_flag() says so.
  WebAnswer Answer(const WebRequest& request);

 private:
  using SumsKey = std::tuple<uint32_t, bool, ProfileView>;

  Result<WebAnswer> Query(const WebRequest& request);
  Result<WebAnswer> Tables(const WebRequest& request);
  Result<WebAnswer> ExportedFile(const WebRequest& request);
  Result<WebAnswer> Sources(const WebRequest& request);
  Result<WebAnswer> Source(const WebRequest& request);
  Result<const SumsByFile*> SumsOf(const WebRequest& request);

  OpenedFile& file_;
  size_t told_warnings_;
  SumsKey sums_key_;  // of sums_: the last ones that were asked for
  SumsByFile sums_;
  bool has_sums_ = false;
};

}  // namespace heapprofd
