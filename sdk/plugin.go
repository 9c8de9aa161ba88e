// Package sdk is what a plugin's author imports: a configuration struct, one plan function, Main.
//
//	func main() {
//		sdk.Main(sdk.Plugin{
//			Name:    "motd",
//			Version: "1.0.0",
//			OS:      []string{"linux"},
//			Kinds:   []sdk.Kind{sdk.For("example.com/v1", "Motd", sdk.PhasePreparation, plan)},
//		})
//	}
//
// One function decides what is missing, so that what a plan shows and what an apply does cannot drift apart.
package sdk

import (
	"context"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/sdk/machine"
)

// Machine is the machine, or the image root, that a plan observes and a change works on.
type Machine = machine.Machine

// Target is which machine it is.
type Target = target.Target

// Phase says when a kind can be applied.
type Phase = pluginv1.Phase

// The phases of a kind.
const (
	PhasePreparation  = pluginv1.PhasePreparation  // can be baked into an image
	PhaseProvisioning = pluginv1.PhaseProvisioning // needs this machine's identity
)

// Fitness says how a plugin fits a machine.
type Fitness = pluginv1.Fitness

// The fitnesses that a Fit function answers.
const (
	FitnessUnsupported = pluginv1.FitnessUnsupported // cannot serve this machine
	FitnessAbsent      = pluginv1.FitnessAbsent      // knows the machine, but what it configures is not installed
	FitnessInstalled   = pluginv1.FitnessInstalled   // what it configures is installed
	FitnessActive      = pluginv1.FitnessActive      // what it configures is what the machine uses now
)

// Plugin is a whole plugin as one value.
type Plugin struct {
	// Name is the provider: the last part of the binary's name.
	Name string
	// Version is the plugin's own version.
	Version string
	// OS lists the operating systems that the plugin serves, as GOOS. On any other it answers Unsupported.
	OS []string
	// Distributions are the IDs of os-release(5) that the plugin was written for, the most specific first; empty for a generic
	// one. Among providers that fit equally well the host takes one that names the distribution of the machine.
	Distributions []string
	// Kinds are the documents that it serves.
	Kinds []Kind
	// Fit says how the plugin fits the machine, and why, in one sentence. Nil means installed wherever OS matches.
	Fit func(ctx context.Context, m Machine) (Fitness, string, error)
}

// PlanFunc compares what a document wants with what the machine is, and returns the changes that are missing.
//
// It writes nothing. Against an empty root it returns changes or Precondition. Its configuration errors are complete:
// all violations at once.
type PlanFunc[C any] func(ctx context.Context, m Machine, want C) (Plan, error)
