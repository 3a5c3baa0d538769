// The whole terminal for a while: its other screen, keys as they are pressed, no echo. It
// is as before when this is left, in whatever way.
//
// A terminal can be slow or stand still for as long as it likes: what is drawn waits
// for it no longer than until somebody wants something else.
#pragma once

#include <termios.h>

#include <cstddef>
#include <string>
#include <vector>

#include "base/scoped_fd.h"

namespace heapprofd {

struct ScreenSize {
  size_t rows = 0;
  size_t columns = 0;
};

class Screen {
 public:
  // Standard input and output are our terminal, and it can be drawn on.
  static bool IsPossible();

  // Enter() begins. `wake_fd`: readable when drawing is to be given up.
  explicit Screen(int wake_fd);

  ~Screen() { Leave(); }

  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Nothing as long as we are in the background, where the terminal is another's. SIGTTIN
  // and SIGTTOU are blocked: whoever is sent there in between is not stopped.
  void Enter();
  void Leave();

  // We have it: it is drawn on, and keys are read.
  bool is_entered() const { return is_entered_; }

  // Readable when a key was pressed, or the terminal is gone.
  int fd() const { return terminal_.get(); }

  ScreenSize size() const;

  // The keys pressed since the last call, which are ours only where the screen is; false:
  // the terminal is gone.
  bool TakeKeys(std::string* keys);

  // Lines from the top on, none of them wider than the screen.
  void Draw(const std::vector<std::string>& lines);

 private:
  bool IsInFront() const;
  void Write(const std::string& text, int wake_fd);

  ScopedFd terminal_;
  int wake_fd_;
  bool is_entered_ = false;
  termios before_{};
};

}  // namespace heapprofd
