// Rules of the C and C++ standards and of POSIX for functions that allocate, as
// observations: each is a line "text: answer", and must be the same line with and without
// the profiler, over any allocator. An answer of `holds` is 1 where the rule is kept, as
// glibc keeps all of them; one of `observe` is whatever the allocator has chosen.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

void holds(const char* rule, int is_kept);
void observe(const char* question, long answer);

// Of values: sizes, alignments, errors. Of lives: threads, forks, signals, exits.
void value_rules(void);
void life_rules(void);

#ifdef __cplusplus
}
#endif
