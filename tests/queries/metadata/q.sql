SELECT name, int_value, str_value FROM metadata ORDER BY name;
