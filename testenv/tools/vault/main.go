// Command vault is a Vault server in memory, with the transit engine and AppRole alone: the authors' command has the plugins of
// every cloud. It serves by TLS at a free port of 127.0.0.1, and prints its address and its root token, a line each.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	log "github.com/hashicorp/go-hclog"
	"github.com/hashicorp/vault/builtin/credential/approle"
	"github.com/hashicorp/vault/builtin/logical/transit"
	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/internalshared/configutil"
	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
	"github.com/hashicorp/vault/sdk/physical/inmem"
	"github.com/hashicorp/vault/vault"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "vault:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	if len(arguments) != 2 {
		return fmt.Errorf("usage: vault CERTIFICATE KEY")
	}
	logger := log.New(&log.LoggerOptions{Level: log.Error})
	storage, err := inmem.NewInmem(nil, logger)
	if err != nil {
		return err
	}
	core, err := vault.NewCore(&vault.CoreConfig{
		Physical: storage, Logger: logger, DisableMlock: true,
		LogicalBackends:    map[string]logical.Factory{"transit": transit.Factory},
		CredentialBackends: map[string]logical.Factory{"approle": approle.Factory}, BuiltinRegistry: registry{},
	})
	if err != nil {
		return err
	}
	one := &vault.SealConfig{SecretShares: 1, SecretThreshold: 1}
	made, err := core.Initialize(ctx, &vault.InitParams{BarrierConfig: one, RecoveryConfig: one})
	if err != nil {
		return err
	}
	if _, err := core.Unseal(made.SecretShares[0]); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("%s\n%s\n", listener.Addr(), made.RootToken)
	server := http.Server{ReadHeaderTimeout: time.Minute, Handler: vaulthttp.Handler.Handler(&vault.HandlerProperties{
		Core: core, ListenerConfig: &configutil.Listener{},
	})}
	return server.ServeTLS(listener, arguments[0], arguments[1])
}

// registry has the two plugins.
type registry struct{}

// Contains implements vault.BuiltinRegistry.
func (r registry) Contains(name string, of consts.PluginType) bool {
	_, ok := r.Get(name, of)
	return ok
}

// Get implements vault.BuiltinRegistry.
func (registry) Get(name string, of consts.PluginType) (func() (interface{}, error), bool) {
	switch {
	case name == "transit" && of == consts.PluginTypeSecrets:
		return func() (interface{}, error) { return logical.Factory(transit.Factory), nil }, true
	case name == "approle" && of == consts.PluginTypeCredential:
		return func() (interface{}, error) { return logical.Factory(approle.Factory), nil }, true
	}
	return nil, false
}

// Keys implements vault.BuiltinRegistry.
func (registry) Keys(of consts.PluginType) []string {
	return map[consts.PluginType][]string{consts.PluginTypeSecrets: {"transit"}, consts.PluginTypeCredential: {"approle"}}[of]
}

// DeprecationStatus implements vault.BuiltinRegistry.
func (registry) DeprecationStatus(string, consts.PluginType) (consts.DeprecationStatus, bool) {
	return consts.Supported, true
}
