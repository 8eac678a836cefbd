module fastness.dev/bench/loadgen

go 1.23
