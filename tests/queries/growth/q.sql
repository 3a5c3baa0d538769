SELECT * FROM heap_profile_growth(2);
SELECT name, dumps, first, last, growth, rises, falls FROM heap_profile_growth(1, 'objects');
SELECT name, growth FROM heap_profile_growth(2) WHERE rises >= 2 AND falls = 0;
SELECT name, first, last, rises FROM heap_profile_growth(0, 'alloc_space');
SELECT * FROM heap_profile_growth(3);
