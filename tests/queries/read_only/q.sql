CREATE VIEW big AS SELECT * FROM heap_profile_allocation WHERE size > 100;
SELECT count(*) AS n FROM big;
DROP VIEW big;
DELETE FROM process;
