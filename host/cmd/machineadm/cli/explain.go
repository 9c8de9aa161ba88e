package cli

import (
	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/host/explain"
	"github.com/machineadm/machineadm/host/session"
)

func newExplain(g *globals, s streams) *cobra.Command {
	var q explain.Query
	c := &cobra.Command{
		Use: "explain KIND[.FIELD]", Short: "Show the fields of a kind of document, or what a field means",
		Long: "explain shows what a kind is for and the fields of its spec, or the meaning of one field. The kinds of this release are\n" +
			"known; the schema of any other comes from the plugin that serves it, if that is installed and trusted. With --example it prints\n" +
			"a document that validates: a minimal one, or with --example=full one with every field, each with a comment. A field that\n" +
			"excludes another is commented out in it.",
		Example: "  machineadm explain Sysctl\n  machineadm explain Sysctl --example=full\n  machineadm explain ContainerRuntime.registries.mirrors\n  machineadm explain Sysctl.metadata.when",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(c.CommandPath() + " takes one argument, such as Sysctl or Sysctl.parameters")
			}
			return nil
		},
		ValidArgsFunction: completeFields,
		RunE: func(c *cobra.Command, args []string) error {
			q.Path = args[0]
			return explain.Write(s.out, q, func(kind string) (string, []byte, error) {
				o, err := g.session(s)
				if err != nil {
					return "", nil, err
				}
				return session.Schema(c.Context(), o, kind)
			})
		},
	}
	f := c.Flags()
	f.BoolVar(&q.Recursive, "recursive", false, "show the fields of fields, by name and type alone")
	f.StringVar(&q.Example, "example", "", "print a document of the kind: minimal, or full with every field")
	f.Lookup("example").NoOptDefVal = explain.Minimal
	return c
}

// completeFields offers kinds and, behind a dot, their fields.
func completeFields(_ *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(given) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return explain.Complete(begun), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace // a dot can follow
}
