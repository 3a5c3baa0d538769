// The fields of a HeapprofdConfig that mean what their member of SessionConfig means,
// both ways, by the tables beside it.
#pragma once

#include "config.pb.h"
#include "engine/session_config.h"

namespace heapprofd {

// `to` is as by default.
void ReadPlainFields(const perfetto::protos::HeapprofdConfig& from, SessionConfig* to);

// Those only that are not as by default.
void WritePlainFields(SessionConfig from, perfetto::protos::HeapprofdConfig* to);

}  // namespace heapprofd
