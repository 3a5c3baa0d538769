SELECT * FROM top('spice', 3);
