// The figures of a heap, or of all of a file, that gates, tables and JSON tell of: each
// with its 95 % limits.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/inspect/opened_file.h"
#include "cli/inspect/threshold.h"
#include "profile/model.h"

namespace heapprofd {

enum class FigureUnit : uint8_t { kBytes, kCount };

struct HeapFigure {
  std::string name;       // "live", of --fail-if
  std::string json_name;  // "live_bytes"
  std::string title;      // "live at end"
  FigureUnit unit = FigureUnit::kBytes;
  BoundedBytes value;
  bool is_known = true;        // false: the file does not tell it
  bool has_limits = true;      // false: nor whether it is an estimate, and how good a one
  bool is_incomplete = false;  // records are missing, of which the limits know nothing
};

// live, peak, allocated, calls: always these, in this order.
std::vector<HeapFigure> FiguresOf(std::span<const ChosenHeap> heaps);

// The same of all processes and heaps of a file, and of children that took no sample.
std::vector<HeapFigure> FiguresOf(const OpenedFile& file);

std::vector<std::string> FigureNames();

// "1.20 MiB", "12.3 k".
std::string FormatFigure(double value, FigureUnit unit);

// Adds NAME, NAME_low and NAME_high; null where they are not known.
void AddFigure(const HeapFigure& figure, nlohmann::ordered_json* json);

// Files of other tools tell none.
void AddPid(const TargetProfile& profile, nlohmann::ordered_json* json);

// How a gate came out.
struct Judgement {
  std::string text;  // of the gate
  Verdict verdict = Verdict::kHolds;
  bool knows_error = true;  // false: of figures whose sampling error nobody knows
  bool is_incomplete = false;
};

// Of JSON for programs.
nlohmann::ordered_json JudgementsJson(const std::vector<Judgement>& judgements);

// kInvalidArgument when the file tells nothing of what a gate asks for.
Status CheckKnown(const std::vector<Threshold>& thresholds,
                  const std::vector<HeapFigure>& figures,
                  const std::string& path);

// Says on stderr which gates have failed, which nobody knows about, and what others have
// not taken into account; gives the exit code.
int SayJudgements(const std::string& tool, const std::vector<Judgement>& judgements);

// Two spaces of indent; what is no UTF-8 is replaced.
std::string JsonText(const nlohmann::ordered_json& json);

}  // namespace heapprofd
