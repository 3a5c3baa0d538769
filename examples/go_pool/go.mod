module example.com/go_pool

go 1.19
