// Package crd tests the custom resource definitions of the controller, against a real API server.
package crd
