// Package sdk is for authors of plugins, who write a configuration struct, one plan function and a call of Main.
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
// Plan and Apply call the same function, so that an apply makes the changes that a plan shows.
package sdk

import (
	"context"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// Fitness is how well a plugin fits a machine.
type Fitness = pluginv1.Fitness

// The results of a Fit function.
const (
	FitnessUnsupported = pluginv1.FitnessUnsupported // cannot serve this machine
	FitnessAbsent      = pluginv1.FitnessAbsent      // serves the machine, but what it configures is not installed
	FitnessInstalled   = pluginv1.FitnessInstalled   // what it configures is installed
	FitnessActive      = pluginv1.FitnessActive      // what it configures is what the machine uses now
)

// Plugin is a whole plugin.
type Plugin struct {
	// Name is the provider: the last part of the binary's name.
	Name string
	// Version is the plugin's own version.
	Version string
	// OS lists the operating systems that the plugin serves, as GOOS. On any other it answers Unsupported.
	OS []string
	// Distributions are the IDs of os-release(5) that the plugin was written for, the most specific first; empty for a generic
	// one. Among providers of equal fitness the host selects one that names the distribution of the machine.
	Distributions []string
	// Kinds are the kinds of documents that it serves.
	Kinds []Kind
	// Fit returns how well the plugin fits the machine, and why, in one sentence. Nil means installed wherever OS matches. An error that is
	// Unsupported, as of Services where systemd does not start the services, is FitnessUnsupported with its message.
	Fit func(ctx context.Context, m Machine) (Fitness, string, error)
}
