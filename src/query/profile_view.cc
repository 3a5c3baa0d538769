#include "query/profile_view.h"

#include <strings.h>

#include <string>

namespace heapprofd {
namespace {

struct ViewName {
  const char* name;
  ProfileView view;
};

constexpr ViewName kNames[] = {
    {"space", ProfileView::kLiveSize},
    {"inuse_space", ProfileView::kLiveSize},
    {"unreleased malloc size", ProfileView::kLiveSize},
    {"unreleased size", ProfileView::kLiveSize},
    {"objects", ProfileView::kLiveCount},
    {"inuse_objects", ProfileView::kLiveCount},
    {"unreleased malloc count", ProfileView::kLiveCount},
    {"unreleased count", ProfileView::kLiveCount},
    {"alloc_space", ProfileView::kAllocSize},
    {"total malloc size", ProfileView::kAllocSize},
    {"total size", ProfileView::kAllocSize},
    {"alloc_objects", ProfileView::kAllocCount},
    {"total malloc count", ProfileView::kAllocCount},
    {"total count", ProfileView::kAllocCount},
};

}  // namespace

std::optional<ProfileView> ParseView(std::string_view name) {
  for (const ViewName& known : kNames) {
    if (strcasecmp(known.name, std::string(name).c_str()) == 0)
      return known.view;
  }
  return std::nullopt;
}

int64_t ValueOf(const FlameValues& values, ProfileView view) {
  switch (view) {
    case ProfileView::kLiveSize:
      return values.size;
    case ProfileView::kLiveCount:
      return values.count;
    case ProfileView::kAllocSize:
      return values.alloc_size;
    case ProfileView::kAllocCount:
      return values.alloc_count;
  }
  return 0;
}

}  // namespace heapprofd
