module github.com/machineadm/machineadm/testenv/tools/spdx

go 1.26.0

tool github.com/machineadm/machineadm/testenv/tools/spdx

require github.com/spdx/tools-golang v0.5.7

require github.com/anchore/go-struct-converter v0.1.0 // indirect
