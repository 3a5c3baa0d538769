#include "client/probes.h"

__attribute__((section(".probes"))) volatile uint16_t otel_memory_alloc_semaphore = 0;
__attribute__((section(".probes"))) volatile uint16_t otel_memory_free_semaphore = 0;
