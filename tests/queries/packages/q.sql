SELECT * FROM package_list;
