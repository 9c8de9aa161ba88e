// Package timeservers gives tests time servers, correct and wrong ones, on a network of nodes, and nodes on which the
// time daemons of Debian run.
package timeservers
