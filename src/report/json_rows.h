// The answer to a query as JSON: {"columns": ["id", ...], "rows": [[0, ...], ...]}.
#pragma once

#include <cstddef>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "query/trace_database.h"

namespace heapprofd {

// Of several statements the last one's. Numbers that are none (infinity) are null.
class JsonRows : public ResultSink {
 public:
  explicit JsonRows(size_t max_rows = SIZE_MAX, size_t max_text_bytes = SIZE_MAX)
      : max_rows_(max_rows), max_text_bytes_(max_text_bytes) {}

  Status BeginResult(const Statement& statement) override;
  Status AddRow(const Statement& statement) override;

  Status EndResult() override { return {}; }

  // The query was ended because there would have been more.
  bool is_cut() const { return is_cut_; }

  nlohmann::json result;

 private:
  size_t max_rows_;
  size_t max_text_bytes_;
  size_t text_bytes_ = 0;
  bool is_cut_ = false;
};

}  // namespace heapprofd
