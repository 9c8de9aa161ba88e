// Command mangen generates the manual pages of the command line, one for each command, or the page of the reference.
//
//	mangen DIR
//	mangen --reference FILE
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra/doc"

	"github.com/machineadm/machineadm/host/cmd/machineadm/cli"
	"github.com/machineadm/machineadm/internal/version"
)

func main() {
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 1:
		err = generate(args[0])
	case len(args) == 2 && args[0] == "--reference":
		err = reference(args[1])
	default:
		fmt.Fprintln(os.Stderr, "usage: mangen DIR | mangen --reference FILE")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mangen:", err)
		os.Exit(1)
	}
}

func generate(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root := cli.NewRoot(nil, io.Discard, io.Discard)
	root.DisableAutoGenTag = true
	epoch := time.Unix(0, 0).UTC() // for reproducible pages
	if err := doc.GenManTree(root, &doc.GenManHeader{
		Title: "MACHINEADM", Section: "8", Source: "machineadm " + version.String(), Manual: "machineadm", Date: &epoch,
	}, dir); err != nil {
		return err
	}
	return complete(filepath.Join(dir, "machineadm.8"))
}

// complete adds the sections that the tree of commands does not have, before SEE ALSO.
func complete(file string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, section := range []struct {
		title string
		rows  []fact
	}{{"EXIT STATUS", exits()}, {"ENVIRONMENT", environment()}, {"FILES", files()}} {
		fmt.Fprintf(&b, ".SH %s\n", section.title)
		for _, f := range section.rows {
			text := f.meaning
			if f.remedy != "" {
				text += ": " + f.remedy
			}
			fmt.Fprintf(&b, ".TP\n\\fB%s\\fP\n%s\n", roff(f.name), roff(text))
		}
		b.WriteString("\n")
	}
	head, tail, _ := strings.Cut(string(page), ".SH SEE ALSO")
	return os.WriteFile(file, []byte(head+b.String()+".SH SEE ALSO"+tail), 0o644) //nolint:gosec // documentation
}

// roff escapes a text for a manual page.
func roff(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", "").Replace(text)
}
