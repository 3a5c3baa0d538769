// The line at the lower end of the terminal that shows how a recording goes.
//
// The program writes to the same terminal. So the last row is kept out of what scrolls,
// as apt does for its progress: what the program prints goes on above it, and never into
// it.
#pragma once

#include <cstdint>
#include <string>

namespace heapprofd {

class StatusLine {
 public:
  // On standard error; shows nothing there when that is no terminal or `is_wanted` is
  // false.
  explicit StatusLine(bool is_wanted);

  ~StatusLine() { Clear(); }

  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool is_shown_at_all() const { return is_wanted_; }

  // Text of one line, cut to the terminal's width.
  void Show(const std::string& text);

  // Removes the line; the terminal is as it was.
  void Clear();

 private:
  void Reserve(uint16_t rows);

  bool is_wanted_;
  uint16_t rows_ = 0;  // of the terminal whose last row is ours; 0: none is
};

}  // namespace heapprofd
