// The answer to a query as JSON: {"columns": ["id", ...], "rows": [[0, ...], ...]}.
#pragma once

#include <cstddef>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "query/trace_database.h"

namespace heapprofd {

// Of several statements the last one's; their bounds are those of all. Numbers that are none (infinity) are null.
class JsonRows : public ResultSink {
 public:
  explicit JsonRows(size_t max_rows = SIZE_MAX, size_t max_bytes = SIZE_MAX)
      : max_rows_(max_rows), max_bytes_(max_bytes) {}

  Status BeginResult(const Statement& statement) override;
  Status AddRow(const Statement& statement) override;

  Status EndResult() override { return {}; }

  // The query was ended because there would have been more.
  bool is_cut() const { return is_cut_; }

  nlohmann::json result;

 private:
  Status TooMany();

  size_t max_rows_;
  size_t max_bytes_;  // of names and values, with the room that each of them takes
  size_t bytes_ = 0;
  bool is_cut_ = false;
};

}  // namespace heapprofd
