#include "cli/record/options.h"

#include <cstdio>

#include "base/print.h"
#include "base/text.h"

namespace heapprofd {
namespace {

constexpr uint64_t kPerfettoDurationMs =
    uint64_t{7} * 24 * 3600 * 1000;  // its heap_profile's
constexpr char kNotOnLinux[] = "has no meaning on Linux and is ignored";
constexpr char kNotOnDevice[] = "has no meaning on a device and is ignored";

// Notes on flags that only a device understands.
void NoteAndroidOnly(Options& options) {
  if (options.android.disable_selinux)
    options.notes.push_back(std::string("--disable-selinux ") + kNotOnLinux);
  if (!options.android.package_versions)
    options.notes.push_back(std::string("--no-versions ") + kNotOnLinux);
  if (options.android.simpleperf)
    options.notes.push_back(std::string("--simpleperf ") + kNotOnLinux);
  if (options.session.device.disable_fork_teardown)
    options.notes.push_back(
        "--disable-fork-teardown changes nothing: a child never ends its parent's "
        "profile");
  if (!options.android.annotate)
    options.notes.push_back(
        "--no-annotations changes nothing: pprof files have no annotated frames");
  if (!options.converter.empty())
    options.notes.push_back(
        "--trace-to-text-binary is not needed on Linux: conversion is built in");
}

// Notes on flags that only Linux understands.
void NoteLinuxOnly(Options& options) {
  SessionConfig by_default;
  for (const SwitchField& field : kSwitchFields) {
    bool& value = field.of(options.session);
    if (field.host_option == nullptr || value == field.of(by_default))
      continue;
    options.notes.push_back(std::string(field.host_option) + " " + kNotOnDevice);
    value = !value;
  }
}

}  // namespace

Status CheckOptions(Options& options) {
  if (options.given.block && options.given.no_block)
    return Invalid("cannot use --block-client together with --no-block-client");
  HPD_TRY(CheckSessionConfig(options.session));
  if (!options.session.heaps.excluded.empty() && !options.session.heaps.all)
    return Invalid("cannot use --exclude-heaps: it only makes sense with --all-heaps");
  const TargetRules& targets = options.session.targets;
  const bool has_targets = !targets.names.empty() || !targets.pids.empty();
  if (options.command.empty() && (options.given.separator || !has_targets))
    return Invalid(
        "cannot profile: no program is named and neither --pid nor --name is given; for "
        "example: heap_profile -- python3 script.py");
  if (!options.command.empty() && options.platform == Platform::kAndroid)
    return Invalid(
        "cannot start a program on a device: name a process there with --name");
  if (!options.command.empty() && !targets.pids.empty())
    return Invalid(
        "cannot use --pid with a program to start, whose process id nobody knows before; "
        "choose with --name, or attach with --pid alone");
  if (!options.command.empty() && targets.no_startup)
    return Invalid(
        "cannot use --no-startup with a program to start; use it with --name or --pid");
  options.session.list_live_blocks = options.with_java;
  if (options.java_dumps > 0 && !options.with_java)
    return Invalid("cannot use --java-dumps: it only makes sense with --with-java");
  if (options.with_java && options.platform == Platform::kAndroid)
    return Invalid(
        "cannot use --with-java on a device; heap_profile java android shows a heap "
        "there");
  if (options.with_java && options.command.empty() && !targets.names.empty())
    return Invalid(
        "cannot use --with-java with --name: name the processes by --pid; heap_profile "
        "java lists the virtual machines that run");
  if (options.platform == Platform::kHost)
    NoteAndroidOnly(options);
  else
    NoteLinuxOnly(options);
  return {};
}

RecordingConfig ConfigOf(const Options& options) {
  RecordingConfig config;
  config.sessions.push_back(options.session);
  const uint64_t by_default = options.command.empty() ? kPerfettoDurationMs : 0;
  config.duration_ms = options.duration_ms.value_or(by_default);
  TargetRules& targets = config.sessions[0].targets;
  if (!options.command.empty() && targets.names.empty()) {
    targets.names.emplace_back(FileName(options.command[0]));
  }
  return config;
}

void PrintNotes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes)
    Print(stderr, "heap_profile: note: %s\n", note.c_str());
}

}  // namespace heapprofd
