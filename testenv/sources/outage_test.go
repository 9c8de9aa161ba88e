package sources

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/sdk"
)

// only is a machine with one plugin, which is a source.
type only struct{ launch.Plugin }

func (o *only) Find(binary string) (catalog.Plugin, error) {
	return catalog.Plugin{Binary: binary}, nil
}

func (o *only) ByType(string) ([]catalog.Plugin, error) { return nil, nil }

func (o *only) Start(context.Context, catalog.Plugin) (*launch.Plugin, error) { return &o.Plugin, nil }

// TestOutage: two thousand runs begin at once while their source is away for minutes. Each finds it within 5 s, and no second has more
// than a third of the requests: about a quarter, by chance.
func TestOutage(t *testing.T) {
	t.Parallel()
	const clients, stream = 2000, "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: RemoteConfig\n" +
		"metadata: {name: a}\nspec: {provider: test, uri: 'test:a'}\n"
	for _, away := range []time.Duration{90 * time.Second, 3 * time.Minute} {
		t.Run(away.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, found := time.Now(), make(chan time.Duration, clients)
				source := sdk.NewSource(sdk.Source{Name: "test", Version: "1", OS: []string{"linux"}, Fetch: func(context.Context, sdk.Location) (sdk.Object, error) {
					late := time.Since(began) - away
					if late < 0 {
						return sdk.Object{}, sdk.Retry(0, "away")
					}
					found <- late
					return sdk.Object{Body: io.NopCloser(strings.NewReader(stream))}, nil // a circle, which ends the run
				}}, "linux")
				description, err := source.Describe(t.Context(), pluginv1.DescribeRequest{Target: target.Target{OS: "linux"}})
				require.NoError(t, err)
				for range clients {
					go func() {
						machine := &only{launch.Plugin{Source: source, Description: description, Kill: func() {}, Stderr: func() string { return "" }}}
						decoded, err := document.Decode("node.yaml", strings.NewReader(stream))
						if !assert.NoError(t, err) {
							return
						}
						got, _ := run.Execute(t.Context(), run.Options{
							Mode: run.ModeApply, Stream: decoded, Text: []byte(stream), Target: target.Target{OS: "linux"},
						}, run.Dependencies{Plugins: machine}, report.Report{})
						assert.Equal(t, report.ExitUsage, got.ExitCode, "%v", got.Errors)
					}()
				}
				time.Sleep(away + time.Minute)
				synctest.Wait()
				close(found)
				require.Len(t, found, clients)
				seconds := map[time.Duration]int{}
				for late := range found {
					assert.LessOrEqual(t, late, 5*time.Second)
					seconds[late.Truncate(time.Second)]++
				}
				for second, n := range seconds {
					assert.LessOrEqual(t, n, clients/3, "%s after the return", second)
				}
				t.Logf("requests by second after the return: %v", seconds)
			})
		})
	}
}
