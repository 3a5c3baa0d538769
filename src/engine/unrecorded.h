// Which programs of a session were started but never reported, and why: nothing that ran
// is left out in silence.
//
// Fed by what clients say about their execs (wire/handshake.h) and by the programs that
// report. Hostile input: names and numbers are bounded, and the worst that a lying client
// gets is a wrong line about itself.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "profile/unrecorded_programs.h"

namespace heapprofd {

class ProgramWatch {
 public:
  // Process `pid` becomes the program `name` at `time_ns` (CLOCK_MONOTONIC). `reason`:
  // why it will not have reported, should it never do so.
  void Attempt(pid_t pid,
               uint64_t time_ns,
               const std::string& name,
               UnrecordedReason reason);

  // It did not: the exec failed.
  void Failed(pid_t pid);

  // The process has reported, at `time_ns`. May come before the Attempt that led to it.
  void Recorded(pid_t pid, uint64_t time_ns);

  // The process has reported, at `time_ns`, and is not recorded. `name`: empty when it is
  // gone; then it is called what it was said, or will be, to become. `detail`: more than
  // the reason, or empty.
  void Missed(pid_t pid,
              uint64_t time_ns,
              std::string name,
              const std::string& detail,
              UnrecordedReason reason);

  // `count` more programs that will not report. `name`: theirs, or that of the program
  // that has begun them and has counted them.
  void Count(const std::string& name, UnrecordedReason reason, uint64_t count);

  // Groups with at least one program, in the order of the reasons.
  std::vector<UnrecordedPrograms> Unrecorded() const;

 private:
  struct Pending {
    std::string name;
    UnrecordedReason reason;
    bool is_missed = false;  // for certain; only its name may still come
  };

  void Forget(pid_t pid);

  std::unordered_map<pid_t, Pending> pending_;
  std::unordered_map<pid_t, uint64_t> recorded_;  // time of the last report
  std::array<UnrecordedPrograms, kUnrecordedReasons> groups_;
};

}  // namespace heapprofd
