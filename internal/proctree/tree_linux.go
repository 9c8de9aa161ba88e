package proctree

import (
	"errors"
	"sync"
)

// Tree is this process with all its descendants.
type Tree struct {
	self   stat
	pid    int
	forks  chan func() // what the starting thread does
	closed chan struct{}
	over   sync.Once

	mu      sync.Mutex // held while a process is forked, so that none is taken for an orphan
	running map[int]*Process
	ended   bool
}

// Process is a program that was started.
type Process struct {
	tree   *Tree
	pid    int
	ended  chan struct{} // closed when it and the orphans that it left are gone
	status int

	mu   sync.Mutex
	gone bool // its ID may be another process's
}

var errEnded = errors.New("proctree: KillDescendants was called")
