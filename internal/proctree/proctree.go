// Package proctree keeps every process that this one starts, and all their descendants, from outliving it: on every exit
// path, SIGKILL included.
//
// On Linux a guard, which is this same executable started once more, stands between the process that wraps a command
// (the host) and the program:
//
//	host ── guard ── program ── whatever it starts
//
// The guard is a child subreaper (prctl(2)), so that orphans come to it, whatever session they made for themselves. It
// holds the read end of a pipe whose write end only the host holds. When the program exits, or when the pipe ends because
// the host is gone, it kills all it has until nothing is left, and exits with the program's status. It takes no notice of
// SIGTERM, SIGINT, SIGHUP and SIGQUIT: a service manager sends them to every process of a unit, and it is the host that
// decides what they mean.
//
// Should the guard itself be killed, the program dies with it (PR_SET_PDEATHSIG), and what the program had started
// comes to the host, which is a subreaper too (Contain) and ends it with Tree.KillDescendants. Only if guard and host are
// both killed at nearly the same moment can a grandchild escape, and only if it left the program's session.
//
// On Windows everything shares a job object with the host that kills its members when the host is gone.
//
// A program that wraps commands calls MainIfGuard first thing in main, and in TestMain of tests that wrap.
package proctree
