// Names of Java classes, and how the class of an object that itself stands for a class is
// named: Android gives each a type of its own, "java.lang.Class<com.example.Node>"; in
// HotSpot all have one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace heapprofd {

// Names in files are cut there: one can be that of many classes and fields at little cost
// to whoever has made the file; programs have none as long as this.
inline constexpr size_t kMostJavaNameBytes = 1024;

inline constexpr std::string_view kClassClass = "java.lang.Class";

// "com.example.Node" of "java.lang.Class<com.example.Node>"; empty: it is no such name.
inline std::string_view DescribedClass(std::string_view name) {
  if (!name.starts_with(kClassClass))
    return {};
  name.remove_prefix(kClassClass.size());
  return name.starts_with('<') && name.ends_with('>') ? name.substr(1, name.size() - 2)
                                                      : std::string_view();
}

// The other way.
inline std::string ClassOfClass(std::string_view described) {
  return std::string(kClassClass).append("<").append(described).append(">");
}

}  // namespace heapprofd
