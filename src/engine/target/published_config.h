// Tells a target's client what the session wants: its parameters in the shared memory.
#pragma once

#include "engine/session_config.h"
#include "wire/shared_memory.h"

namespace heapprofd {

// Ends with `control.active`: from then on the client goes by it.
void PublishConfig(const SessionConfig& config, EngineBlock* engine);

}  // namespace heapprofd
