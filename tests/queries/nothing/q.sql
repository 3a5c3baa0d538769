SELECT count(*) AS n FROM heap_profile_allocation;
SELECT * FROM heap_dump;
SELECT * FROM top();
SELECT * FROM android_heap_profile_summary_tree;
