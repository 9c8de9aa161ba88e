module github.com/containerd/containerd/v2

go 1.26
