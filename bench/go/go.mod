module biga.dev/bench

go 1.21
