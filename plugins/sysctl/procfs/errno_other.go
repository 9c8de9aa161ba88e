//go:build !linux

package main

import "syscall"

func errnoName(syscall.Errno) string { return "" }
