module github.com/badge-distribution/badge-distribution-service/src/verify/go

go 1.19
