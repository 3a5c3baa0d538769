// RecordingEnd as packets of a trace, and what such packets of a hostile file say.
#pragma once

#include <string>
#include <string_view>

#include "profile/recording_end.h"

namespace heapprofd {

// Without the processes, each of which has a message of its own.
std::string RecordingEndMessage(const RecordingEnd& end);
std::string ProcessEndMessage(const ProcessEnd& end);

// Numbers and lists are within bounds. Malformed bytes end as those of MessageReader.
RecordingEnd ReadRecordingEnd(std::string_view message);
ProcessEnd ReadProcessEnd(std::string_view message);

}  // namespace heapprofd
