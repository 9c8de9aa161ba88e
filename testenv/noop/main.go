// Command noop is a scripted plugin: it does what a test requests, also what no plugin may do.
//
// It implements the protocol itself, without the SDK and without the server adapter, so that it can break every rule.
// Its behavior before a document arrives is in a JSON file beside the binary, named like it plus .script; its behavior
// with a document is in the document's spec.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

// script is the file beside the binary.
type script struct {
	// Start is what happens before the handshake: crash, hang, garbage, version, silent, stdin, or nothing.
	Start string `json:"start"`
	// Describe is what happens at Describe: crash, hang, internal, child, or nothing.
	Describe string `json:"describe"`
	// Say is written to stderr before the handshake.
	Say string `json:"say"`
	// Child, if set, is the file where a child that outlives the plugin writes its process ID.
	Child string `json:"child"`
	// Witness, if set, is the file where the plugin writes its inputs: arguments, environment, stdin.
	Witness string `json:"witness"`
	Fitness string `json:"fitness"` // unsupported, absent, installed, active
	Reason  string `json:"reason"`
	// Distributions are those that the plugin reports as its own.
	Distributions []string `json:"distributions"`
	Kinds         []kind   `json:"kinds"`
	// Source and Keys are the scripts under the name of a source and of a key provider.
	Source sourceScript `json:"source"`
	Keys   keysScript   `json:"keys"`
}

// kind is a kind that the plugin serves.
type kind struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Phase      string `json:"phase"`
	// Schema is the JSON schema, sent if it is asked for.
	Schema json.RawMessage `json:"schema"`
	// Provides is what its documents provide, if the plugin says it.
	Provides *[]string `json:"provides"`
}

func main() {
	s, err := readScript(os.Args[0] + ".script")
	if err != nil {
		fmt.Fprintln(os.Stderr, "noop:", err)
		os.Exit(64)
	}
	if err := s.begin(); err != nil {
		fmt.Fprintln(os.Stderr, "noop:", err)
		os.Exit(65)
	}
	version := pluginv1.ProtocolVersion
	if s.Start == "version" {
		version = 99
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  launch.Handshake(),
		VersionedPlugins: map[int]plugin.PluginSet{version: {launch.PluginName: &adapter{server: &server{script: s, name: provider(), stop: make(chan struct{}, 1)}}}},
		Logger:           hclog.NewNullLogger(),
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(options, grpc.MaxRecvMsgSize(pluginv1.MaxMessageBytes), grpc.MaxSendMsgSize(pluginv1.MaxMessageBytes))...)
		},
	})
}

func readScript(path string) (script, error) {
	var s script
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(data, &s)
}

// program is the name of the binary.
func program() string { return strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") }

// provider is the last part of the binary's name.
func provider() string {
	name := program()
	for _, prefix := range []string{sourcePrefix, keysPrefix} {
		if provider, found := strings.CutPrefix(name, prefix); found {
			return provider
		}
	}
	return name[strings.LastIndex(name, "-plugin-")+len("-plugin-"):]
}

// begin runs the script of the time before the handshake.
func (s script) begin() error {
	if s.Say != "" {
		fmt.Fprintln(os.Stderr, s.Say)
	}
	if s.Witness != "" {
		if err := s.witness(); err != nil {
			return err
		}
	}
	if s.Child != "" {
		if err := spawn(s.Child); err != nil {
			return err
		}
	}
	switch s.Start {
	case "crash":
		fmt.Fprintln(os.Stderr, "noop: crashing before the handshake")
		os.Exit(3)
	case "silent":
		os.Exit(0)
	case "hang":
		time.Sleep(24 * time.Hour) // not select {}: the runtime would end the process for a deadlock
	case "garbage":
		fmt.Println("hello, I am not a handshake")
	}
	return nil
}

func (s script) witness() error {
	stdin, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	data, err := json.Marshal(map[string]any{"args": os.Args, "environ": os.Environ(), "stdin": string(stdin), "pid": os.Getpid()})
	if err != nil {
		return err
	}
	return os.WriteFile(s.Witness, data, 0o600)
}
