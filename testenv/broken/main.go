// Command broken is a plugin with one defect, for the conformance kit to find. The name of its file says which; the provider
// sound has none at all.
//
// It serves the kind Files of example.com/v1 with the SDK, and its defects are laid around that: so each breaks one rule
// and keeps all others. As a source or as a key provider it reads files and asks HTTP servers.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

const (
	apiVersion = "example.com/v1"
	kind       = "Files"
	version    = "0.0.0-broken"
)

// files is the document: files with their contents, and a token in a file of its own.
type files struct {
	v1alpha1.Header
	Spec struct {
		Provider  string           `json:"provider,omitempty"`
		Files     []file           `json:"files,omitempty"`
		TokenFile string           `json:"tokenFile,omitempty"`
		Token     *v1alpha1.Secret `json:"token,omitempty"`
		Needs     string           `json:"needs,omitempty"`  // a file that must be there already
		Link      string           `json:"link,omitempty"`   // a link to the first file
		Reload    bool             `json:"reload,omitempty"` // a service reads the first file
	} `json:"spec"`
}

type file struct {
	Path    string `json:"path"`
	Content string `json:"content,omitempty"`
}

func main() {
	d, err := find(strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "broken:", err)
		os.Exit(64)
	}
	if d.cookieless {
		h := launch.Handshake()
		if err := os.Setenv(h.MagicCookieKey, h.MagicCookieValue); err != nil {
			os.Exit(64)
		}
	}
	serve(d, d.served())
	if d.lingering {
		select {}
	}
}

// served is the plugin of the defect's type.
func (d defect) served() pluginv1.Describer {
	switch d.kind {
	case v1alpha1.KindRemoteConfig:
		return newSource(d)
	case v1alpha1.KindEncryptedConfig:
		return newKeys(d)
	}
	var serves sdk.Kind = sdk.For(apiVersion, kind, sdk.PhasePreparation, d.plan)
	if d.kind == v1alpha1.KindTimesync {
		serves = sdk.For(v1alpha1.APIVersion, d.kind, sdk.PhasePreparation, d.planTime)
	}
	served := sdk.NewConfigurator(sdk.Plugin{
		Name: d.name, Version: version, OS: []string{runtime.GOOS},
		Kinds: []sdk.Kind{serves},
	}, runtime.GOOS)
	served = rooted{served}
	if d.wrap != nil {
		served = d.wrap(served)
	}
	return served
}

// serve is launch.Serve, but for what a defect does to the server.
func serve(d defect, m pluginv1.Describer) {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: launch.Handshake(),
		VersionedPlugins: map[int]plugin.PluginSet{
			pluginv1.ProtocolVersion: {launch.PluginName: &adapter{served: m}},
		},
		Logger: hclog.NewNullLogger(),
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			if !d.smallMessages {
				options = append(options,
					grpc.MaxRecvMsgSize(pluginv1.MaxMessageBytes), grpc.MaxSendMsgSize(pluginv1.MaxMessageBytes))
			}
			if !d.late {
				options = append(options, pluginv1.OrderStops())
			}
			if d.stream != nil {
				options = append(options, grpc.StreamInterceptor(d.stream))
			}
			if d.answer != nil {
				options = append(options, grpc.UnaryInterceptor(d.intercept))
			}
			return grpc.NewServer(options...)
		},
	})
}

// intercept lets the defect change the answer to a call.
func (d defect) intercept(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	response, err := handler(ctx, request)
	return d.answer(request, response, err)
}

type adapter struct {
	plugin.NetRPCUnsupportedPlugin
	served pluginv1.Describer
}

func (a *adapter) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error { //nolint:unparam // go-plugin's interface
	pluginv1.Register(s, a.served)
	return nil
}

func (*adapter) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("broken is no host")
}

// rootKey is the key of the image root in the context of a change: the SDK shows none, defects need it.
type rootKey struct{}

// rooted puts the root into the context.
type rooted struct{ pluginv1.Configurator }

func (r rooted) Apply(
	ctx context.Context, request pluginv1.Request, limit int, send func(pluginv1.Event) error,
) (pluginv1.Finished, error) {
	return r.Configurator.Apply(context.WithValue(ctx, rootKey{}, request.Root), request, limit, send)
}

// plan is sound, but for how the defect writes.
func (d defect) plan(_ context.Context, m sdk.Machine, doc files) (sdk.Plan, error) {
	var violations []sdk.Violation
	specs := make([]sdk.FileSpec, 0, len(doc.Spec.Files)+1)
	for i, f := range doc.Spec.Files {
		at := document.Path("spec").Field("files").Index(i).Field("path")
		if !strings.HasPrefix(f.Path, "/") {
			message := "must be absolute"
			if d.quoting {
				message += ", unlike " + f.Path
			}
			violations = append(violations, sdk.Violation{Field: string(at), Message: message})
		}
		specs = append(specs, sdk.FileSpec{Path: f.Path, Content: []byte(f.Content), Mode: 0o644})
	}
	if doc.Spec.Token != nil {
		specs = append(specs, sdk.FileSpec{
			Path: doc.Spec.TokenFile, Content: doc.Spec.Token.Reveal(), Mode: 0o600, Sensitive: true,
		})
	}
	if len(violations) > 0 {
		return sdk.Plan{}, sdk.InvalidConfig(violations...)
	}
	if doc.Spec.Needs != "" {
		if _, err := m.FS.Lstat(doc.Spec.Needs); err != nil {
			return sdk.Plan{}, notReady()
		}
	}
	var out sdk.Plan
	for _, spec := range specs {
		change, err := sdk.File(m, spec)
		if err != nil {
			return sdk.Plan{}, err
		}
		if change != nil && d.write != nil {
			sound := change.Do
			change.Do = func(ctx context.Context, p sdk.Progress) error {
				root, _ := ctx.Value(rootKey{}).(string)
				return d.write(root, spec, func() error { return sound(ctx, p) })
			}
		}
		if change == nil && d.again != nil {
			change = d.onceMore(spec)
		}
		out.Add(change)
	}
	if doc.Spec.Reload && len(doc.Spec.Files) > 0 {
		out.Add(d.reload(m, doc.Spec.Files[0], len(out.Changes) > 0))
	}
	if doc.Spec.Link != "" && len(doc.Spec.Files) > 0 {
		target := doc.Spec.Files[0].Path
		m.Claim("link:"+doc.Spec.Link, "spec.link", target)
		if have, err := m.FS.Readlink(doc.Spec.Link); err != nil || have != target {
			out.Add(&sdk.Change{
				ID: "link:" + doc.Spec.Link, Summary: "make the link " + doc.Spec.Link, Diff: "+" + target + "\n",
				Do: func(context.Context, sdk.Progress) error { return m.FS.Symlink(target, doc.Spec.Link) },
			})
		}
	}
	return out, nil
}

// reload is the change by which the service reads the file: as long as it has read another one.
func (d defect) reload(m sdk.Machine, f file, changed bool) *sdk.Change {
	have, err := m.FS.ReadFile("/run/app/loaded")
	_, failed := m.FS.Lstat("/run/app/failed")
	switch {
	case d.forgetful && !changed && !m.Offline(), d.untried && failed == nil:
		return nil
	case !m.Offline() && err == nil && string(have) == f.Content:
		return nil
	}
	return &sdk.Change{
		ID: "reload:app", Summary: "reload app", NeedsLive: true,
		Do: func(ctx context.Context, _ sdk.Progress) error {
			_, err := m.Commands.Run(ctx, machine.Command{Name: "app-control", Args: []string{"reload"}})
			if d.unchecked {
				err = nil
			}
			if d.untried && err != nil {
				return errors.Join(err, m.FS.WriteFile("/run/app/failed", nil, 0o644))
			}
			if d.leaving && err == nil {
				err = exec.CommandContext(context.WithoutCancel(ctx), "sh", "-c", "setsid tail -f /dev/null >/dev/null 2>&1 &").Run()
			}
			return err
		},
	}
}

// planTime writes a Timesync as JSON, without the field that the defect ignores.
func (d defect) planTime(_ context.Context, m sdk.Machine, doc v1alpha1.Timesync) (sdk.Plan, error) {
	if _, violations := sdk.ProviderConfig[struct{}](doc.Spec.ProviderConfig); len(violations) > 0 {
		return sdk.Plan{}, sdk.InvalidConfig(violations...)
	}
	doc.Spec.Provider = ""
	for i := range doc.Spec.Pools {
		if d.ignores == "minPoll" {
			doc.Spec.Pools[i].MinPoll = nil
		}
	}
	content, err := json.Marshal(doc.Spec)
	if err != nil {
		return sdk.Plan{}, err
	}
	change, err := sdk.File(m, sdk.FileSpec{Path: "/etc/timesync.json", Content: content, Mode: 0o644})
	var out sdk.Plan
	out.Add(change)
	return out, err
}

// notReady says that the file which spec.needs names is missing.
func notReady() error {
	return &pluginv1.Error{
		Code: pluginv1.CodePrecondition, Message: "a file is missing", Hint: "put it there",
		Violations: []document.Violation{{Field: "spec.needs", Message: "is not there"}},
		Facts:      map[string]string{"missing": "1"},
	}
}

// onceMore is a change of a file that needs none.
func (d defect) onceMore(spec sdk.FileSpec) *sdk.Change {
	change := &sdk.Change{ID: "file:" + spec.Path, Summary: "write " + spec.Path}
	if !spec.Sensitive {
		change.Diff = "+" + string(spec.Content)
	}
	change.Do = func(ctx context.Context, _ sdk.Progress) error {
		root, _ := ctx.Value(rootKey{}).(string)
		return d.again(root, spec)
	}
	return change
}
