// The tokens of SQL, as far as they are needed to find a statement's end and its parts.
// SQLite understands the rest.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace heapprofd {

bool IsNameStart(char c);

// Length of the token at the start of `text`, which is not empty: a quoted text, a
// comment, a name or number, or a single character.
size_t TokenLength(std::string_view text);

// Comments are blanks, too.
std::string_view WithoutLeadingBlanks(std::string_view text);

// Removes `word` from the start of the text, in any case, with the blanks behind it.
bool ConsumeWord(std::string_view* text, std::string_view word);

// The same of any name, which is returned; empty: there is none.
std::string_view ConsumeName(std::string_view* text);

// The end of the parentheses that `text` begins with; npos when they do not close.
size_t ClosingParenthesis(std::string_view text);

// At commas outside of texts and parentheses. None when there are only blanks.
std::vector<std::string_view> SplitAtCommas(std::string_view text);

}  // namespace heapprofd
