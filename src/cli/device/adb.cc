#include "cli/device/adb.h"

#include <cstdlib>

namespace heapprofd {

bool IsNumber(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

Result<CommandResult> Adb::Run(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), "adb");
  Result<CommandResult> result = RunCommand(arguments, mask_, impatience_);
  if (result.ok() && when_answered_)
    when_answered_();
  if (!result.ok() && result.status().code() == StatusCode::kNotFound)
    return Status(StatusCode::kNotFound,
                  result.status().message() + "; apt-get install adb");
  return result;
}

Result<std::string> Adb::Output(std::vector<std::string> arguments) const {
  HPD_TRY_ASSIGN(CommandResult result, Run(std::move(arguments)));
  return std::move(result.output);
}

Result<std::string> Adb::Shell(const std::string& command) const {
  return Output({"shell", command});
}

Status Adb::Tell(const std::string& command) const {
  Result<std::string> output = Shell(command);
  return output.ok() ? Status() : std::move(output).status();
}

Result<int> Adb::SdkVersion() const {
  HPD_TRY_ASSIGN(const std::string sdk, Shell("getprop ro.build.version.sdk"));
  if (!IsNumber(sdk))
    return Status(StatusCode::kUnavailable, "cannot reach a device: adb answered \"" +
                                                sdk.substr(0, 200) +
                                                "\"; connect one and check adb devices");
  return atoi(sdk.c_str());  // NOLINT(cert-err34-c): checked above
}

}  // namespace heapprofd
