// Becomes another program, in a child.
#pragma once

#include <unistd.h>

#include <string>
#include <vector>

namespace heapprofd {

// `command`: the program, looked up in PATH, and its arguments. Comes back only when it
// cannot be executed; errno says why.
inline void Execute(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
}

}  // namespace heapprofd
