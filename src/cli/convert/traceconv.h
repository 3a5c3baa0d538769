// traceconv: conversion of trace files. `heap_profile traceconv MODE ...`, or a program
// or link of the name traceconv.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace heapprofd {

// What `profile` converts.
enum class ProfileKind : uint8_t { kDetect, kAlloc, kJavaHeap };

struct TraceconvOptions {
  std::string mode;
  std::string input = "-";   // "-": standard input
  std::string output = "-";  // "-": standard output
  std::optional<int64_t> pid;
  std::vector<int64_t> timestamps;
  ProfileKind kind = ProfileKind::kDetect;
  bool annotate = true;
  bool verbose = false;
  std::string output_directory;            // empty: a fresh one
  std::vector<std::string> symbol_paths;   // more places for symbols
  bool auto_symbol_paths = true;           // and those that are usual
  std::vector<std::string> proguard_maps;  // "[package=]file"
  bool auto_proguard_maps = true;          // and those of PERFETTO_PROGUARD_MAP
};

// The modes.
Status ConvertToProfiles(const TraceconvOptions& options);
Status ConvertToJavaProfiles(const TraceconvOptions& options);
Status ConvertToText(const TraceconvOptions& options);
Status ConvertToBinary(const TraceconvOptions& options);
Status ConvertToPlainPackets(const TraceconvOptions& options);
Status ConvertToSymbols(const TraceconvOptions& options);
Status ConvertToDeobfuscation(const TraceconvOptions& options);
Status ConvertToBundle(const TraceconvOptions& options);

}  // namespace heapprofd
