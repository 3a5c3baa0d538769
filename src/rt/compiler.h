// Attributes and branch hints for code that runs inside the target.
#pragma once

#define HPD_LIKELY(x) __builtin_expect(!!(x), 1)
#define HPD_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define HPD_NOINLINE __attribute__((noinline))
#define HPD_COLD __attribute__((noinline, cold))
#define HPD_EXPORT __attribute__((visibility("default")))
