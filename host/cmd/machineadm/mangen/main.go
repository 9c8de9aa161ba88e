// Command mangen generates the manual pages of the command line, one for each command, or the page of the reference.
//
//	mangen DIR DATE
//	mangen --reference FILE
//
// DATE is the date of the release, in seconds since 1970.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra/doc"

	"github.com/machineadm/machineadm/host/cmd/machineadm/cli"
	"github.com/machineadm/machineadm/internal/version"
)

func main() {
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "--reference":
		err = reference(args[1])
	case len(args) == 2:
		var seconds int64
		if seconds, err = strconv.ParseInt(args[1], 10, 64); err == nil {
			err = generate(args[0], time.Unix(seconds, 0).UTC())
		}
	default:
		fmt.Fprintln(os.Stderr, "usage: mangen DIR DATE | mangen --reference FILE")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mangen:", err)
		os.Exit(1)
	}
}

func generate(dir string, date time.Time) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root := cli.NewRoot(nil, io.Discard, io.Discard)
	root.DisableAutoGenTag = true
	if err := doc.GenManTree(root, &doc.GenManHeader{
		Section: "8", Source: "machineadm " + version.String(), Manual: "machineadm", Date: &date,
	}, dir); err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.8"))
	if err != nil {
		return err
	}
	for _, file := range pages {
		page, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		added := section("EXIT STATUS", exits())
		if filepath.Base(file) == "machineadm.8" {
			added += section("ENVIRONMENT", environment()) + section("FILES", files())
		}
		head, tail, _ := strings.Cut(string(options(page)), ".SH SEE ALSO")
		if err := os.WriteFile(file, []byte(head+added+".SH SEE ALSO"+tail), 0o644); err != nil { //nolint:gosec // documentation
			return err
		}
	}
	return nil
}

// options writes each option with the name of its value, and its default behind the description.
func options(page []byte) []byte {
	option := regexp.MustCompile(`(?m)^(\\fB-.*\\fP)(?:\[=(.*)\]|=(.*))\n\t(.*)$`)
	return option.ReplaceAllFunc(page, func(found []byte) []byte {
		part := option.FindSubmatch(found)
		name, flag, fallback, text := regexp.MustCompile(`\\fB([A-Z/]+)\\fR`).FindSubmatch(part[4]), part[1], string(part[3]), part[4]
		if name != nil {
			flag = fmt.Appendf(flag, ` \fI%s\fP`, name[1])
		}
		if !slices.Contains([]string{"", `""`, "[]"}, fallback) {
			text = fmt.Appendf(text, " (default %s)", brief(strings.Trim(fallback, `"`)))
		}
		return fmt.Appendf(nil, "%s\n\t%s", flag, text)
	})
}

// section returns a section that the tree of commands does not have.
func section(title string, rows []fact) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".SH %s\n", title)
	for _, f := range rows {
		text := f.meaning
		if f.remedy != "" {
			text += ": " + f.remedy
		}
		fmt.Fprintf(&b, ".TP\n\\fB%s\\fP\n%s\n", roff(f.name), roff(text))
	}
	return b.String() + "\n"
}

// roff escapes a text for a manual page.
func roff(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", "").Replace(text)
}
