SELECT * FROM heap_profile_histogram;
SELECT name, value FROM stats WHERE value != 0;
