SELECT ts, upid, label, reason, live_size, allocator, allocator_system_size, allocator_in_use_size, allocator_free_size
FROM heap_dump;
