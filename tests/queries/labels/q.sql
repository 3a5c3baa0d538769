SELECT * FROM heap_profile_label;
SELECT value, sum(size) AS live FROM heap_profile_allocation JOIN heap_profile_label USING (callsite_id)
WHERE key = 'tenant' GROUP BY value;
SELECT count(*) AS unlabelled FROM heap_profile_allocation WHERE callsite_id NOT IN (SELECT callsite_id FROM heap_profile_label);
