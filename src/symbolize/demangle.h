// Names for people from names for linkers: C++ (Itanium ABI), Rust (legacy and v0) and D.
//
// Names come from ELF files and are hostile: depth, time and length of the result are
// bounded. A name that is not mangled, or too deep or too long to be shown, is returned
// as it is.
#pragma once

#include <string>
#include <string_view>

namespace heapprofd {

// The full form, as pprof and Perfetto show it: "std::vector<int>::push_back(int&&)".
std::string Demangle(std::string_view system_name);

// For lines of a terminal: without parameters and return type, and with the template
// arguments of very long C++ names replaced: "absl::flat_hash_map<...>::insert".
std::string ShortName(std::string_view system_name);

}  // namespace heapprofd
