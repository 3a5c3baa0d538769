// What the forked children of a process have counted that have no profile of their own: a
// message that Perfetto's traces do not have. Not part of a dump, for children may go on
// when the process has ended and its last dump is written.
#pragma once

#include <string>
#include <string_view>

#include "profile/model.h"
#include "trace/trace_builder.h"

namespace heapprofd {

std::string UnsampledChildrenMessage(const TargetProfile& profile);

// A row of ImportedTrace::unsampled_children.
void ImportUnsampledChildren(TraceBuilder& builder, std::string_view message);

}  // namespace heapprofd
