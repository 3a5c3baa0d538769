#include "service/engines.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace heapprofd {
namespace {

constexpr size_t kMaxEnginesOfUser = 4;  // with other groups each
constexpr size_t kMaxEnginesOfRoot = 64;
constexpr size_t kMaxUsers = 128;                  // with engines, without root
constexpr size_t kMaxUsersOfOtherNamespaces = 32;  // of these

}  // namespace

// Root always finds room, and so does whoever has an engine; the number of others is
// bounded. User ids that somebody can make up leave most of the room to those that are
// real.
Status Engines::CheckRoomFor(uid_t user, bool is_of_other_namespace) const {
  size_t same = 0;
  std::set<uid_t> users;
  std::set<uid_t> of_other_namespaces;
  for (const std::unique_ptr<EngineProcess>& engine : engines_) {
    const uid_t its_user = engine->rights().user;
    same += its_user == user ? 1 : 0;
    if (its_user != 0)
      users.insert(its_user);
    if (engine->is_of_other_namespace)
      of_other_namespaces.insert(its_user);
  }
  if (same >= (user == 0 ? kMaxEnginesOfRoot : kMaxEnginesOfUser))
    return Status(StatusCode::kUnavailable,
                  "cannot serve the command: " + std::to_string(same) +
                      " engines of this user run already, each for other groups; end "
                      "recordings that were started with other groups");
  if (user == 0 || same > 0)
    return {};
  if (users.size() >= kMaxUsers)
    return Status(StatusCode::kUnavailable,
                  "cannot serve the command: " + std::to_string(users.size()) +
                      " users have recordings already; try again when one has ended");
  if (is_of_other_namespace && of_other_namespaces.size() >= kMaxUsersOfOtherNamespaces)
    return Status(
        StatusCode::kUnavailable,
        "cannot serve the command: " + std::to_string(of_other_namespaces.size()) +
            " users of other user namespaces have recordings already; try "
            "again when one has ended");
  return {};
}

Result<EngineProcess*> Engines::Of(const Visitor& visitor) {
  const Rights& rights = visitor.rights;
  for (const std::unique_ptr<EngineProcess>& engine : engines_) {
    if (engine->rights() == rights && !engine->is_leaving)
      return engine.get();
  }
  const bool is_root = rights.user == 0;
  const bool is_of_other_namespace = !is_root && IsOfOtherNamespace(visitor);
  HPD_TRY(CheckRoomFor(rights.user, is_of_other_namespace));
  HPD_TRY_ASSIGN(std::unique_ptr<EngineProcess> engine,
                 EngineProcess::Start(rights, main_));
  engine->is_of_other_namespace = is_of_other_namespace;
  ++started_;
  return engines_.insert(is_root ? engines_.begin() : engines_.end(), std::move(engine))
      ->get();
}

std::vector<EngineProcess*> Engines::ThatMayWant(const Visitor& visitor,
                                                 const EngineProcess* after) const {
  std::vector<EngineProcess*> found;
  bool is_behind = after == nullptr;
  for (const std::unique_ptr<EngineProcess>& engine : engines_) {
    const Rights& rights = engine->rights();
    const bool may_want = rights.user == 0 || (rights.user == visitor.rights.user &&
                                               rights.group == visitor.rights.group);
    if (is_behind && may_want && engine->recordings > 0 && !engine->is_leaving)
      found.push_back(engine.get());
    is_behind |= engine.get() == after;
  }
  return found;
}

uint64_t Engines::CountRecordings() const {
  uint64_t count = 0;
  for (const std::unique_ptr<EngineProcess>& engine : engines_)
    count += engine->recordings;
  return count;
}

int Engines::MillisecondsToNext() const {
  int wait_ms = -1;
  for (const std::unique_ptr<EngineProcess>& engine : engines_) {
    if (const int limit_ms = engine->MillisecondsToNext(); limit_ms >= 0)
      wait_ms = wait_ms < 0 ? limit_ms : std::min(wait_ms, limit_ms);
  }
  return wait_ms;
}

void Engines::Reap() {
  std::erase_if(engines_, [](const auto& engine) { return engine->HasEnded(); });
}

}  // namespace heapprofd
