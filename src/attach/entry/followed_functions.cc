#include "attach/entry/followed_functions.h"

#include <optional>

#include "attach/prologue.h"

namespace heapprofd {
namespace {

constexpr size_t kLongestJump = 24;  // bytes, with markers
constexpr int kMaxJumps = 4;

}  // namespace

JumpFollower::JumpFollower(const RemoteProcess& process,
                           FileCode* file,
                           const std::vector<Allocator>& allocators)
    : process_(process), file_(file) {
  for (const Allocator& allocator : allocators) {
    for (const AllocatorFunction& function : allocator.functions)
      known_.insert(function.address);
  }
}

std::vector<FollowedFunction> JumpFollower::Follow(const Allocator& allocator) {
  std::vector<FollowedFunction> followed;
  followed.reserve(allocator.functions.size());
  for (const AllocatorFunction& function : allocator.functions)
    followed.push_back(FollowOne(function));
  return followed;
}

// 0: the linker's stub has not looked for its function yet.
uint64_t JumpFollower::Resolve(uint64_t slot) const {
  uint64_t target = 0;
  if (!process_.ReadObject(slot, &target) ||
      IsLazyStub(file_->Read(target, kLongestJump)))
    return 0;
  return target;
}

FollowedFunction JumpFollower::FollowOne(const AllocatorFunction& function) {
  const FollowedFunction unfollowed{
      .function = function, .code = function.address, .is_alias = false};
  uint64_t code = function.address;
  for (int i = 0; i < kMaxJumps; ++i) {
    const std::vector<uint8_t> bytes = file_->Read(code, kLongestJump);
    std::optional<OnwardJump> onward = JumpOnward(bytes, code);
    if (!onward && i > 0)
      onward = StubOnward(bytes, code);
    if (!onward)
      return {.function = function,
              .code = code,
              .is_alias = i > 0 && !known_.insert(code).second};
    code = onward->slot != 0 ? Resolve(onward->slot) : onward->target;
    if (file_->MappingAt(code) == nullptr)
      return unfollowed;
    if (known_.contains(code) && code != function.address)
      return {.function = function, .code = code, .is_alias = true};
  }
  return unfollowed;
}

}  // namespace heapprofd
