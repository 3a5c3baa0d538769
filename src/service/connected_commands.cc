#include "service/connected_commands.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"

namespace heapprofd {
namespace {

// More than recordings, since a command may only want a dump.
constexpr size_t kMaxConnections = 128;
constexpr size_t kMaxConnectionsOfRoot = 512;
constexpr int kMessagesOfConnection = 4;  // in one turn
constexpr int kLookAtSilentMs = 500;      // between two looks at who takes too long

}  // namespace

void ConnectedCommand::TellStarted() {
  if (!std::exchange(awaits_start, false))
    return;
  const Status ignored = channel.Send(ControlType::kStarted, "");
  static_cast<void>(ignored);  // its end shows on the channel
}

void ConnectedCommands::Admit(Visitor visitor) {
  const size_t limit = geteuid() == 0 ? kMaxConnectionsOfRoot : kMaxConnections;
  if (commands_.size() >= limit)
    return Refuse(visitor, "cannot serve one more command: " + std::to_string(limit) +
                               " of this user are connected already; stop one");
  commands_.push_back(std::make_unique<ConnectedCommand>(
      ConnectedCommand{.serial = next_serial_++,
                       .channel = ControlChannel(visitor.connection.Release()),
                       .deadline_ns = MonotonicNs() + patience_ns_}));
}

void ConnectedCommands::AddTo(std::vector<pollfd>* fds) const {
  for (const std::unique_ptr<ConnectedCommand>& command : commands_)
    fds->push_back({.fd = command->channel.fd(), .events = POLLIN, .revents = 0});
}

int ConnectedCommands::MillisecondsToNext() const {
  if (is_behind_)
    return 0;
  return std::ranges::all_of(commands_,
                             [](const auto& command) { return command->has_recording; })
             ? -1
             : kLookAtSilentMs;
}

void ConnectedCommands::Serve(const Handle& handle, const Gone& gone) {
  is_behind_ = false;
  for (size_t i = commands_.size(); i-- > 0;) {
    ConnectedCommand& command = *commands_[i];
    const bool is_open = Hear(command, handle);
    if (is_open && (MonotonicNs() < command.deadline_ns || command.has_recording))
      continue;
    gone(command.serial);
    commands_.erase(commands_.begin() + static_cast<ptrdiff_t>(i));
  }
}

bool ConnectedCommands::Hear(ConnectedCommand& command, const Handle& handle) {
  bool is_open = true;
  for (int turn = 0; is_open; ++turn) {
    if (turn == kMessagesOfConnection) {
      is_behind_ = true;
      break;
    }
    Result<std::optional<ControlMessage>> message = command.channel.Receive();
    if (message.ok() && !message.value())
      break;
    is_open = message.ok() && handle(command, std::move(*message.value()));
    command.deadline_ns = MonotonicNs() + patience_ns_;
  }
  return is_open;
}

void ConnectedCommands::TellStarted() {
  for (const std::unique_ptr<ConnectedCommand>& command : commands_)
    command->TellStarted();
}

ConnectedCommand* ConnectedCommands::Find(size_t serial) const {
  for (const std::unique_ptr<ConnectedCommand>& command : commands_) {
    if (command->serial == serial)
      return command.get();
  }
  return nullptr;
}

void ConnectedCommands::Close(size_t serial) {
  std::erase_if(commands_, [serial](const std::unique_ptr<ConnectedCommand>& command) {
    return command->serial == serial;
  });
}

}  // namespace heapprofd
