// What a session allows this very process to spend.
#pragma once

#include "engine/session_config.h"

namespace heapprofd {

class Guardrail {
 public:
  // CPU time counts from here.
  explicit Guardrail(const Guardrails& limits);

  // It has spent more.
  bool IsHit() const;

 private:
  Guardrails limits_;
  double cpu_at_start_;  // seconds, of this process
};

}  // namespace heapprofd
