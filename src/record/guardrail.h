// What a session allows this very process to spend.
#pragma once

#include <functional>

#include "engine/session_config.h"

namespace heapprofd {

// Spent by all threads of this process.
double OwnCpuSeconds();

class Guardrail {
 public:
  // CPU time counts from here.
  explicit Guardrail(const Guardrails& limits,
                     std::function<double()> cpu_seconds = OwnCpuSeconds);

  // It has spent more.
  bool IsHit() const;

 private:
  Guardrails limits_;
  std::function<double()> cpu_seconds_;
  double cpu_at_start_;
};

}  // namespace heapprofd
