// The parts of a session that stand around one of them, for the tests of that one.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "engine/session/attached_targets.h"
#include "engine/session/session_context.h"

namespace heapprofd {

inline SessionConfig SmallSession(bool follows_children) {
  SessionConfig config;
  config.ring_size_bytes = kMinRingSize;
  config.follow_children = follows_children;
  return config;
}

// Of targets that nobody has attached to.
inline SessionTargets::TakeHooksOut NoHooks() {
  return [](const std::shared_ptr<AttachedProcess>&) {};
}

class SessionPartTest : public testing::Test {
 protected:
  SessionPartTest() {
    context_.set_between([this] { ++served_; });
  }

  int served_ = 0;  // how often others were served by who waits
  SessionContext context_{SmallSession(/*follows_children=*/true), NoHooks()};
  SessionTargets& targets_ = context_.targets();
  ProgramWatch& programs_ = context_.programs();
  AttachedTargets attached_{&context_};
};

}  // namespace heapprofd
