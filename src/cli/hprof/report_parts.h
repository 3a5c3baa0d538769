// What the views of heap dumps have in common in how they say things.
#pragma once

#include <cstdint>

#include <nlohmann/json.hpp>

#include "cli/hprof/examined_dump.h"
#include "cli/hprof/hprof_report.h"

namespace heapprofd {

// `rows` and what is true of all of the dump.
void PrintJson(const OpenedDump& opened,
               const char* name,
               nlohmann::json rows,
               nlohmann::json all);

// How many of `rows` are to be shown.
size_t Shown(size_t rows, const HprofView& view);

// The headline of a table.
void PrintTotal(const OpenedDump& opened, uint64_t objects, uint64_t bytes);

// "class java.lang.String 0x1234", "java.lang.String id=7".
std::string TitleOf(const Examined& examined, uint32_t object);

nlohmann::json JsonOf(const Examined& examined, uint32_t object);

// The steps, and for each how it is called by the one before.
nlohmann::json JsonOf(const Examined& examined, const HoldingPath& path);

// The steps, one per line.
void PrintStepRows(const Examined& examined, const HoldingPath& path);

// Behind its root.
void PrintSteps(const Examined& examined, const HoldingPath& path);

}  // namespace heapprofd
