package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/host/reporting/words"
	"github.com/machineadm/machineadm/host/session"
)

// writeTable writes a line for each kind of each plugin.
func writeTable(w io.Writer, infos []session.Plugin) error {
	if len(infos) == 0 {
		return nil
	}
	rows := [][]string{{"KIND", "PROVIDER", "VERSION", "FITNESS", "STATUS", "PATH"}}
	for _, i := range infos {
		status := "Trusted"
		switch {
		case !i.Trusted:
			status = "Untrusted"
		case i.Problem != "":
			status = "Failed"
		}
		kinds := slices.Compact(slices.Sorted(slices.Values(i.KindNames)))
		if len(kinds) == 0 {
			kinds = []string{"<unknown>"}
		}
		for _, kind := range kinds {
			rows = append(rows, []string{
				kind, i.Provider(kind), cmp.Or(i.Version, "<unknown>"), cmp.Or(i.Fitness, "<unknown>"), status, i.Path,
			})
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for n := range row {
			row[n] = words.Escape(row[n])
		}
		fmt.Fprintln(&b, strings.Join(row, "\t"))
	}
	for _, i := range infos {
		if i.Problem != "" {
			remedy := cmp.Or(i.Remedy, "see its output with machineadm plugins inspect "+i.Binary)
			fmt.Fprintf(&b, "%s: %s\n  hint: %s\n", words.Escape(i.Binary), words.Escape(i.Problem), words.Escape(remedy))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeDetails(w io.Writer, infos []session.Plugin) error {
	var b strings.Builder
	for _, i := range infos {
		writePlugin(&b, i)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writePlugin(b *strings.Builder, i session.Plugin) {
	rows := [][2]string{{"path", i.Path}, {"sha256", i.SHA256}, {"version", i.Version}, {"fitness", i.Fitness}}
	if i.Reason != "" {
		rows[3][1] += ": " + i.Reason
	}
	rows = append(rows, [2]string{"serves", strings.Join(i.Kinds, ", ")}, [2]string{"problem", i.Problem}, [2]string{"remedy", i.Remedy})
	fmt.Fprintln(b, i.Binary)
	for _, row := range rows {
		if row[1] != "" {
			fmt.Fprintf(b, "  %s\t%s\n", row[0], words.Escape(row[1]))
		}
	}
	for line := range strings.Lines(i.Stderr) {
		fmt.Fprintf(b, "  stderr\t%s\n", words.Escape(strings.TrimRight(line, "\r\n")))
	}
}

// show writes infos as JSON or as text.
func show(out io.Writer, output string, infos []session.Plugin, text func(io.Writer, []session.Plugin) error) error {
	if output == "json" {
		return reporting.WriteJSON(out, infos)
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	if err := text(w, infos); err != nil {
		return err
	}
	return w.Flush()
}

func listProblems(s streams, p session.Plugins) error {
	code := report.ExitOK
	if len(p.Problems)+len(p.Found) == 0 {
		s.note("no plugin is installed in any of " + strings.Join(p.Directories, ", "))
	}
	for _, problem := range p.Problems {
		s.fail(problem)
		code = report.ExitCode(problem.Code)
	}
	for _, i := range p.Found {
		if !i.Trusted {
			code = report.ExitUntrusted
		} else if i.Problem != "" && code == report.ExitOK {
			code = report.ExitFailed
		}
	}
	if code != report.ExitOK {
		return &exitError{code: code}
	}
	return nil
}
