SELECT ts, upid, name, value FROM process_memory;
SELECT * FROM profiler_smaps;
