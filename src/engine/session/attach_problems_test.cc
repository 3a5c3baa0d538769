#include "engine/session/attach_problems.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

bool IsNobody(pid_t /*pid*/) {
  return false;
}

TEST(AttachProblemsTest, ManyAreNotAllShownButThatIsSaid) {
  AttachProblems problems;
  for (int i = 0; i < 5000; ++i)
    problems.Note("cannot");
  const std::vector<std::string> all = problems.All(IsNobody);
  EXPECT_EQ(all.size(), 1001u);
  EXPECT_EQ(all.back(), "there were more problems of the kind; not all are shown");
}

TEST(AttachProblemsTest, AProgramThatCameByItselfHadNoProblem) {
  AttachProblems problems;
  problems.NoteStart("cannot attach to process 12: it is busy; wait");
  problems.NoteStart("cannot attach to process 13: it is busy; wait");
  problems.NoteStart("of another form");
  EXPECT_EQ(problems.All([](pid_t pid) { return pid == 12; }),
            (std::vector<std::string>{"of another form",
                                      "cannot attach to process 13: it is busy; wait"}));
  EXPECT_EQ(problems.All(IsNobody).size(), 3u);
}

TEST(AttachProblemsTest, TooManyStartsArePlainProblems) {
  AttachProblems problems;
  for (int i = 0; i < 1001; ++i)
    problems.NoteStart("cannot attach to process 12: it is busy; wait");
  EXPECT_EQ(problems.All([](pid_t pid) { return pid == 12; }).size(), 1u);
}

}  // namespace
}  // namespace heapprofd
