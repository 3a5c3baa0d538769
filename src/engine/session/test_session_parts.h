// The parts of a session that stand around one of them, for the tests of that one.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "engine/session/attach_context.h"
#include "engine/session/attached_targets.h"

namespace heapprofd {

class SessionPartTest : public testing::Test {
 protected:
  SessionPartTest() { clock_.Update(); }

  SessionConfig config_;
  TscClock clock_;
  ModuleCache modules_;
  ProgramWatch programs_;
  AttachProblems problems_;
  int served_ = 0;  // how often others were served by who waits
  SessionTargets targets_{&clock_, &programs_, [](const std::string&) {},
                          [](const std::shared_ptr<AttachedProcess>&) {}};
  AttachContext context_{.config = &config_,
                         .clock = &clock_,
                         .modules = &modules_,
                         .programs = &programs_,
                         .targets = &targets_,
                         .problems = &problems_,
                         .serve_meanwhile = [this] { ++served_; }};
  AttachedTargets attached_{&context_};
};

}  // namespace heapprofd
