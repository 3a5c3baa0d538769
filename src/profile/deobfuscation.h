// From the short names that ProGuard or R8 gave to Java classes and members back to those
// in the source. No I/O: mapping files are read in symbolize/proguard_map.h, traces carry
// the same content as DeobfuscationMapping.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace heapprofd {

// Where a method calls an outline: a method that R8 made of code that several share. The
// call has a line of its own, which says nothing; where in the method the code would
// stand follows from the line in the outline.
struct OutlineCall {
  static constexpr size_t kMaxLines = 1000;  // outlines are short: readers leave out more

  std::string outline;  // "a.b.a": obfuscated class and method
  std::vector<std::pair<uint32_t, uint32_t>> lines;  // in the outline -> in the method
};

struct ObfuscatedMember {
  std::string obfuscated_name;    // "a"
  std::string deobfuscated_name;  // fields "size"; methods "com.example.Store.read"
  // Lines in the obfuscated class that are this method, and their lines in its source.
  // 0: not told.
  uint32_t obfuscated_line_start = 0;
  uint32_t obfuscated_line_end = 0;
  uint32_t source_line_start = 0;
  uint32_t source_line_end = 0;
  bool is_outline = false;
  std::vector<OutlineCall> outline_calls;  // at obfuscated_line_start to _end
};

struct ObfuscatedClass {
  std::string obfuscated_name;    // "a.b"
  std::string deobfuscated_name;  // "com.example.Store"
  std::vector<ObfuscatedMember> fields;
  std::vector<ObfuscatedMember> methods;
};

// One mapping file.
struct DeobfuscationMap {
  std::string package_name;  // "com.example"; empty: of any package
  int64_t version_code = 0;
  std::vector<ObfuscatedClass> classes;
};

class Deobfuscator {
 public:
  void Add(DeobfuscationMap map);

  bool empty() const { return maps_.empty(); }

  struct Method {
    std::string_view name;  // qualified
    uint32_t line = 0;      // 0: unknown
  };

  // The method behind "a.b.c" ("a.b" is the class), called in the `package`; both as the
  // process knows them. With the frame's `line` (0: unknown) in code where methods were
  // inlined into another one: all of them, the innermost first. Empty: no map knows it.
  //
  // Without a line, or when lines do not tell methods apart: the name of the method that
  // was really called, or all that share the short name, joined by " | ".
  struct Answer {
    std::string name;             // empty: unknown
    std::vector<Method> inlined;  // the chain, its last one is `name`; empty: no chain
  };

  Answer FindMethod(std::string_view package,
                    std::string_view qualified_name,
                    uint32_t line) const;

  // Whether "a.b.c" is an outline: it is no method of the source.
  bool IsOutline(std::string_view package, std::string_view qualified_name) const;

  // A line of an obfuscated method.
  struct Position {
    std::string_view qualified_name;
    uint32_t line = 0;  // 0: unknown
  };

  // The line at which the code of `outline` would stand in the method that calls it at
  // `call`; both names are of the `package`. 0: unknown.
  uint32_t LineAtOutline(std::string_view package,
                         const Position& call,
                         const Position& outline) const;

  // "com.example.Store" for "a.b"; also in "a.b[]", "java.lang.Class<a.b>" and
  // "java.lang.Class<a.b[]>". Empty: unknown.
  std::string FindClass(std::string_view package, std::string_view name) const;

  // "com.example.Store.size" for "a.b.a"; where the map names a field with its class,
  // because it was moved there from another one, that name. Empty: unknown.
  std::string FindField(std::string_view package, std::string_view qualified_name) const;

 private:
  struct Class {
    std::string name;
    std::unordered_map<std::string, std::vector<ObfuscatedMember>> methods;
    std::unordered_map<std::string, std::string> fields;
  };

  struct Map {
    std::string package;
    std::unordered_map<std::string, Class> classes;
  };

  const Class* Find(std::string_view package, std::string_view name) const;
  const std::vector<ObfuscatedMember>* FindOverloads(
      std::string_view package, std::string_view qualified_name) const;

  std::vector<Map> maps_;
};

}  // namespace heapprofd
