// libheapprofd_stub32.so: what 32-bit programs get in place of the preload library. It is
// empty: their loader would complain to the program's standard error about a library of
// another class, or about one that is not there.
.section .note.GNU-stack, "", @progbits
