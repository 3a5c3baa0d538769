// To whom the programs that report to a service belong: the first session that wants one
// has it, and later ones note that.
#pragma once

#include <sys/types.h>

#include <vector>

#include "engine/session.h"
#include "service/visitor.h"

namespace heapprofd {

// The sessions of all recordings, in the order of their begin.
using Sessions = std::vector<Session*>;

// Answers the program: the first session that wants it records it. The socket does not
// block, so the few bytes of a Welcome go out at once or never.
void AdmitProgramTo(const Sessions& sessions, Visitor visitor);

// The process has reported when there was no room or no time for it.
void NoteMissedBy(const Sessions& sessions, pid_t pid);

// `newest` is told of processes that it wants and `earlier` ones have already.
void NoteConflicts(const Sessions& earlier, Session& newest);

bool IsRecordedBy(const Sessions& sessions, pid_t pid);

}  // namespace heapprofd
