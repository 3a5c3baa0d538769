SELECT * FROM heap_profile_thread;
SELECT thread_name, sum(live_size) FROM heap_profile_thread JOIN thread USING (utid) WHERE thread.is_main_thread GROUP BY 1;
