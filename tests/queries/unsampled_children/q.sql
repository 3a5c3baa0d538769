SELECT name, count, uncounted, alloc_size, alloc_count FROM heap_profile_unsampled_children JOIN process USING (upid);
