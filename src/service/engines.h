// The engines of all users: one for each set of rights, as many as there may be, in the
// order in which programs are offered to them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "service/engine_process.h"
#include "service/visitor.h"

namespace heapprofd {

class Engines {
 public:
  explicit Engines(EngineProcess::Main main) : main_(std::move(main)) {}

  // Root's first.
  const std::vector<std::unique_ptr<EngineProcess>>& all() const { return engines_; }

  bool is_empty() const { return engines_.empty(); }

  // That were ever started.
  size_t started() const { return started_; }

  // That with the visitor's rights, which is started if there is none and there may be
  // one more.
  Result<EngineProcess*> Of(const Visitor& visitor);

  // Those behind `after` (nullptr: all) that may want this program, in the order in which
  // they are asked.
  std::vector<EngineProcess*> ThatMayWant(const Visitor& visitor,
                                          const EngineProcess* after) const;

  // Of all of them, as they have said.
  uint64_t CountRecordings() const;

  // Until one should be served in any case; -1: no need.
  int MillisecondsToNext() const;

  // Forgets those that have ended.
  void Reap();

 private:
  Status CheckRoomFor(uid_t user, bool is_of_other_namespace) const;

  EngineProcess::Main main_;
  std::vector<std::unique_ptr<EngineProcess>> engines_;
  size_t started_ = 0;
};

}  // namespace heapprofd
