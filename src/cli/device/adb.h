// A device behind adb, the program that PATH finds; which of several, ANDROID_SERIAL says,
// as adb wants it.
#pragma once

#include <signal.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "cli/run_command.h"

namespace heapprofd {

bool IsNumber(const std::string& text);

class Adb {
 public:
  // It runs with `mask`, and is ended when `impatience` says so: kTryAgain then.
  // `when_answered`: called each time that it has run to its end.
  Adb(const sigset_t& mask,
      Impatience impatience,
      std::function<void()> when_answered = nullptr)
      : mask_(mask),
        impatience_(std::move(impatience)),
        when_answered_(std::move(when_answered)) {}

  Result<CommandResult> Run(std::vector<std::string> arguments) const;

  // What it prints, whatever its exit code: before Android 7 that says nothing.
  Result<std::string> Output(std::vector<std::string> arguments) const;
  Result<std::string> Shell(const std::string& command) const;

  // The answer does not matter.
  Status Tell(const std::string& command) const;

  // Of its SDK, by which Android's versions are known. An error: there is no device.
  Result<int> SdkVersion() const;

 private:
  sigset_t mask_;
  Impatience impatience_;
  std::function<void()> when_answered_;
};

}  // namespace heapprofd
