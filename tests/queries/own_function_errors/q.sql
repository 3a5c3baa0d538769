SELECT * FROM flamegraph(7, 'space');
