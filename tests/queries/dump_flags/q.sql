SELECT name, key_type, idx, severity, source, value FROM stats WHERE value != 0 ORDER BY name, idx;
SELECT p.pid, is_peak, is_complete, from_startup, rejected_concurrent, disconnected, buffer_overran, buffer_corrupted,
  hit_guardrail, client_error, sampling_interval, original_sampling_interval FROM heap_dump JOIN process p USING (upid);
