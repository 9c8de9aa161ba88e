package terminal

import (
	"flag"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/tools"
)

var update = flag.Bool("update", false, "write the picture of the README")

const (
	checkout = "../.."
	picture  = checkout + "/docs/demo.svg"
	columns  = 122
)

// TestPictureOfTheDemo runs the main commands of make demo on a terminal. The picture of the README is what it shows.
func TestPictureOfTheDemo(t *testing.T) {
	t.Parallel()
	b := newBench(t, "{}")
	require.NoError(t, tools.Products(t.Context(), b.plugins, map[string]string{"machineadm-sysctl-plugin-procfs": "plugins/sysctl/procfs"}))
	stream, err := os.ReadFile(checkout + "/examples/node.yaml")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, "node.yaml"), stream, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(b.dir, "image"), 0o755))
	var shown strings.Builder
	for _, step := range []struct {
		line string
		exit int
	}{
		{"machineadm plan --path node.yaml --root image", report.ExitDiffers},
		{"machineadm apply --path node.yaml --root image", report.ExitOK},
	} {
		argv := strings.Fields(step.line)
		c := exec.CommandContext(within(t), filepath.Join(built, argv[0]), append([]string{"--plugin-dir", b.plugins}, argv[1:]...)...)
		c.Dir, c.Env = b.dir, []string{"TERM=xterm", "TMPDIR=" + b.tmp}
		s := beginOn(t, c, columns)
		s.ends(step.exit)
		fmt.Fprintf(&shown, "\x1b[1m$ %s\x1b[0m\n%s\n", step.line, s.text())
	}
	// The picture does not change with the times of a run.
	text := regexp.MustCompile(`\b\d+ms\b|under 1ms`).ReplaceAllString(shown.String(), "2ms")
	text = regexp.MustCompile(`took 2ms`).ReplaceAllString(text, "took 30ms")
	got := svg(strings.TrimRight(text, "\n"))
	if *update {
		require.NoError(t, os.WriteFile(picture, []byte(got), 0o600))
	}
	want, err := os.ReadFile(picture)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "run make picture, and look at it")
}

// TestASequenceOfColors: the picture has each color as a class, and no character of the text as markup.
func TestASequenceOfColors(t *testing.T) {
	t.Parallel()
	got := svg("a <b>\n\x1b[1;31mFailed\x1b[0m at & \x1b[32m+1\x1b[0m")
	assert.Contains(t, got, ">a &lt;b&gt;</text>")
	assert.Contains(t, got, `><tspan class="s1 s31">Failed</tspan> at &amp; <tspan class="s32">+1</tspan></text>`)
	assert.NotContains(t, got, "\x1b")
}

// The size of a cell of the picture, in units of SVG, and the edge around all of them.
const (
	cell = 7.3
	line = 16
	edge = 16
)

// svg draws the text of a terminal. Its colors are those that the viewer prefers, light or dark.
func svg(text string) string {
	lines := strings.Split(text, "\n")
	width, height := columns*cell+2*edge, len(lines)*line+2*edge
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" width="%.0f" height="%d" role="img">
<title>machineadm plan and machineadm apply on a terminal</title>
<style>
rect { fill: #f6f8fa; stroke: #d0d7de } text { fill: #1f2328; font: 12px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre }
.s1 { font-weight: bold } .s31 { fill: #cf222e } .s32 { fill: #116329 } .s33 { fill: #7d4e00 } .s36 { fill: #1b6c8a }
@media (prefers-color-scheme: dark) {
rect { fill: #0d1117; stroke: #30363d } text { fill: #e6edf3 }
.s31 { fill: #ff7b72 } .s32 { fill: #7ee787 } .s33 { fill: #e3b341 } .s36 { fill: #76e3ea }
}
</style>
<rect x="0.5" y="0.5" width="%.0f" height="%d" rx="6"/>
`, width, height, width, height, width-1, height-1)
	for i, l := range lines {
		if l != "" {
			fmt.Fprintf(&out, "<text x=\"%d\" y=\"%d\" xml:space=\"preserve\">%s</text>\n", edge, edge+i*line+12, spans(l))
		}
	}
	return out.String() + "</svg>\n"
}

// spans turns the sequences of colors in a line into elements.
func spans(text string) string {
	var out strings.Builder
	open := false
	for _, part := range regexp.MustCompile("\x1b\\[[0-9;]*m|[^\x1b]+").FindAllString(text, -1) {
		parameters, isStyle := strings.CutPrefix(part, "\x1b[")
		switch parameters = strings.TrimSuffix(parameters, "m"); {
		case !isStyle:
			out.WriteString(html.EscapeString(part))
		case open:
			out.WriteString("</tspan>")
			open = false
		default:
			fmt.Fprintf(&out, `<tspan class="s%s">`, strings.ReplaceAll(parameters, ";", " s"))
			open = true
		}
	}
	return out.String()
}
