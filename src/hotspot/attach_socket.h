// HotSpot's attach mechanism, by which jcmd and its like ask a virtual machine. It
// listens at /tmp/.java_pidN, once it has been told to by a file /tmp/.attach_pidN of its
// own user's and SIGQUIT. A question is the protocol's version, a command and three
// arguments, each with a zero behind it; the answer is a number, 0 when the command was
// understood, and text up to the end of the connection.
//
// All of this is for a messenger (errand.h): /tmp belongs to everybody, and in a
// container to whoever runs that.
#pragma once

#include <cstdint>
#include <string>

#include "base/scoped_fd.h"
#include "base/status.h"
#include "hotspot/errand.h"
#include "hotspot/java_process.h"

namespace heapprofd {

// The process's own /tmp, links in it resolved as the process would.
Result<ScopedFd> OpenTemporary(const JavaProcess& process);

struct MachinePatience {
  uint64_t until_it_listens_ns = 0;
  uint64_t without_progress_ns = 0;  // of any kind, from then on
  const char* advice = "";           // what whoever runs out of it can do: ends a message
};

// Whom is asked, by whom.
struct Attachment {
  const JavaProcess& process;
  ScopedFd temporary;  // its /tmp
  const Sender& sender;
  const MachinePatience& patience;  // until it listens; else the sender's is the one
};

// All of these must outlive it.
Result<Attachment> OpenAttachment(const JavaProcess& process,
                                  const Sender& sender,
                                  const MachinePatience& patience);

// A connection to the process itself: to nobody else who listens in its place. Makes it
// listen if need be, and leaves no file behind.
Result<ScopedFd> ConnectTo(const Attachment& attachment);

struct AttachQuestion {
  std::string command;
  std::string first = {};
  std::string second = {};
};

Status SendQuestion(int socket, const AttachQuestion& question, const Sender& sender);

// Connects, asks and waits for the answer.
Result<std::string> AskMachine(const Attachment& attachment,
                               const AttachQuestion& question);

}  // namespace heapprofd
