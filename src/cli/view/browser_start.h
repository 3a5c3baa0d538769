// Opens the desktop's browser. The page's address is a secret, and the arguments of
// programs are not: the browser is given a file that only its user can read, and that
// leads there.
#pragma once

#include <string>

namespace heapprofd {

class BrowserStart {
 public:
  // Nothing happens without a display or when standard output is no terminal; whether
  // there is a browser nobody says.
  explicit BrowserStart(const std::string& url);
  ~BrowserStart();  // the file goes
  BrowserStart(const BrowserStart&) = delete;
  BrowserStart& operator=(const BrowserStart&) = delete;

 private:
  std::string directory_;
};

}  // namespace heapprofd
