CREATE PERFETTO TABLE sums(name STRING, size LONG) AS
SELECT name, sum(size) AS size FROM heap_profile_allocation a JOIN stack_profile_callsite c ON c.id = a.callsite_id
JOIN stack_profile_frame f ON f.id = c.frame_id GROUP BY 1;
SELECT * FROM sums;
CREATE PERFETTO INDEX by_name ON sums(name);
CREATE OR REPLACE PERFETTO VIEW sums AS SELECT 1 AS one;
SELECT * FROM sums;
CREATE PERFETTO FUNCTION live_of(wanted LONG) RETURNS LONG AS
SELECT sum(size) FROM heap_profile_allocation WHERE callsite_id = $wanted;
SELECT id, live_of(id) AS live, live_of(NULL) AS missing FROM stack_profile_callsite;
CREATE PERFETTO FUNCTION greet(who STRING) RETURNS STRING AS SELECT 'hello ' || $who;
CREATE PERFETTO FUNCTION greet_twice(who STRING) RETURNS STRING AS SELECT greet(greet($who));
SELECT greet_twice('you') AS text;
CREATE OR REPLACE PERFETTO FUNCTION greet(who STRING) RETURNS STRING AS SELECT 'bye ' || $who WHERE $who != 'nobody';
SELECT greet_twice('you') AS text, greet('nobody') AS missing, greet(1.5) AS number;
CREATE PERFETTO MACRO larger(rows TableOrSubquery, least Expr) RETURNS TableOrSubquery AS
(SELECT * FROM $rows WHERE size > $least);
SELECT count(*) AS n FROM larger!(heap_profile_allocation, 100);
SELECT count(*) AS n FROM larger!(larger!(heap_profile_allocation, 0), 10 * 10);
CREATE OR REPLACE PERFETTO FUNCTION greet(who STRING) RETURNS STRING AS SELECT greet($who);
SELECT greet('you');
