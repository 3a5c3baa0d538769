SELECT * FROM heap_profile_allocation;
SELECT * FROM heap_profile;
