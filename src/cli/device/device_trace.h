// A trace that Perfetto on a device records: started there, waited for, steered by our
// signals, fetched.
#pragma once

#include <cstdint>
#include <string>

#include "cli/device/adb.h"
#include "cli/record/signals.h"

namespace heapprofd {

class DeviceTrace {
 public:
  // `greeting`: what is said when it has begun; empty: nothing is said at all.
  // `dump_command`: what SIGUSR1 is for the device's shell; empty: nothing.
  explicit DeviceTrace(std::string greeting, std::string dump_command = "");

  // First of all.
  Status Reach();

  // `config`: the trace configuration as text. `name`: of the file there, which
  // nobody else has.
  Status Start(const std::string& config, const std::string& name);

  // Until Perfetto is gone there. Ctrl-C ends the recording on the device, SIGUSR1 is
  // passed on. A device that does not answer may be unplugged: the recording goes on.
  Status AwaitEnd();

  // To a file here.
  Status Pull(const std::string& path);

  // Once it is safe here; where it may be removed. Whatever comes of this.
  void RemoveThere();

  const Adb& adb() const { return adb_; }

  // Of the file there.
  const std::string& path() const { return path_; }

  // The version of the device's SDK.
  int sdk() const { return sdk_; }

  // Whether its trace may be removed there.
  bool CanRemove() const;

  // What those who wait are told: kTryAgain of any of these is that they gave up.
  Status Explained(const Status& status) const;

  // Those who have given up wait once more, for what has to be put right there.
  void ForgetStops() { stop_requests_ = 0; }

 private:
  bool HasGivenUp();
  void HearSignals();
  void Pause();
  Status PassOn();

  std::string greeting_;
  std::string dump_command_;
  SteeringSignals signals_;
  Adb adb_;
  int sdk_ = 0;
  std::string pid_;   // Perfetto's, on the device
  std::string path_;  // on the device; empty: there is nothing yet
  bool is_recording_ = false;
  bool is_told_to_stop_ = false;
  bool said_waiting_ = false;
  int dump_requests_ = 0;
  int stop_requests_ = 0;
  uint64_t stopped_ns_ = 0;  // when the first of them came
};

}  // namespace heapprofd
