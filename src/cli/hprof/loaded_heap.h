// A heap as a graph of objects, and what else is said about these: all that views need to
// know, whether the heap is of a dump or of a trace.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "cli/hprof/opened/opened_dump.h"
#include "hprof/load_graph.h"
#include "object_graph/object_graph.h"

namespace heapprofd {

// An object that stands for a class.
struct ClassObject {
  uint32_t object;
  std::string_view name;  // lives as long as the heap
};

// Neither: that of the virtual machine.
struct ClassLoader {
  uint32_t object = kNoObject;
  uint64_t missing = 0;  // the id of one that the dump does not have

  auto operator<=>(const ClassLoader&) const = default;
};

struct LoadedClass {
  static constexpr uint32_t kNoType = UINT32_MAX;

  uint32_t type = kNoType;  // of its objects; kNoType: there are none
  ClassLoader loader;
  bool is_counted = true;  // false: comes with others (arrays)
};

// How an object calls another one: ".next", "[12]", ".static CACHE"; "": not known.
struct NamedStep {
  uint32_t owner;
  uint32_t target;
  std::string name = {};
};

// What is in a field, or an element of an array.
struct FieldValue {
  std::string name;             // "java.util.HashMap.size", "[12]"
  std::string type;             // "int"
  std::string number = {};      // as the language writes it
  bool is_reference = false;    // and no number
  uint32_t object = kNoObject;  // that it refers to
  uint64_t missing = 0;         // its id, where the dump does not have the object
};

struct FieldValues {
  std::vector<FieldValue> values;
  uint64_t count = 0;    // with those beyond the most that are wanted
  bool has_data = true;  // false: an array whose elements the dump does not have
  std::map<uint32_t, std::string> texts = {};  // of the object and others, of strings
};

class LoadedHeap {
 public:
  LoadedHeap(const LoadedHeap&) = delete;
  LoadedHeap& operator=(const LoadedHeap&) = delete;
  virtual ~LoadedHeap() = default;

  virtual const ObjectGraph& graph() const = 0;

  // "ROOT_JNI_GLOBAL", of a kind of the graph's.
  virtual std::string RootName(uint32_t kind) const = 0;

  // Its class; "class java.lang.String" for the object that stands for that.
  virtual std::string ObjectName(uint32_t object) const = 0;

  // What tells it from others of its class, and how one names it: "0x64", "id=7".
  virtual std::string HandleOf(uint32_t object) const = 0;

  // kNoObject: there is none, or it is no handle.
  virtual uint32_t FindHandle(const std::string& text) const = 0;

  // The handle, for programs.
  virtual void Identify(uint32_t object, nlohmann::json* row) const = 0;

  // Each object once, in their order.
  virtual std::vector<ClassObject> ClassObjects() const = 0;

  // Those of which it is known who has loaded them.
  virtual std::vector<LoadedClass> Classes() const = 0;

  // Fills in the names.
  virtual void NameSteps(std::vector<NamedStep>* steps) const = 0;

  // The first `most`; of texts so many characters.
  virtual FieldValues ValuesOf(uint32_t object, size_t most, size_t characters) const = 0;

  // What it was made of, for views that ask the dump itself; nullptr: a trace.
  virtual const hprof::HeapGraph* of_dump() const { return nullptr; }

 protected:
  LoadedHeap() = default;
};

// What could not be read becomes notes. `opened` must outlive the heap.
Result<std::unique_ptr<LoadedHeap>> LoadHeap(OpenedDump* opened);

// A heap of a trace.
std::unique_ptr<LoadedHeap> LoadHeapOfTrace(const OpenedDump& opened);

}  // namespace heapprofd
