-- a comment; with a semicolon
SELECT 'a;b' AS text, "c;d" AS other, /* ; */ 1 AS one;;
SELECT demangle('_ZN3foo4workEv') AS d, demangle('main') AS m, trace_start() AS s, trace_end() AS e, trace_dur() AS t;
SELECT 'it''s ";" fine', NULL AS missing, 1.5 AS half, x'414200' AS blob;
SELECT * FROM no_such_macro!(process)
