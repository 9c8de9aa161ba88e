package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/contract/v1alpha1/schema"
	"github.com/machineadm/machineadm/host/session"
)

func newExplain(g *globals, s streams) *cobra.Command {
	recursive := false
	c := &cobra.Command{
		Use: "explain KIND[.FIELD]", Short: "Show the fields of a kind of document, or what a field means",
		Long: "explain shows what a kind is for and the fields of its spec, or the meaning of one field. The kinds of this release are\n" +
			"known; the schema of any other comes from the plugin that serves it, if that is installed and trusted.",
		Example: "  machineadm explain Sysctl\n  machineadm explain ContainerRuntime.registries.mirrors\n  machineadm explain Sysctl.metadata.when",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(c.CommandPath() + " takes one argument, such as Sysctl or Sysctl.parameters")
			}
			return nil
		},
		ValidArgsFunction: completeFields,
		RunE:              func(c *cobra.Command, args []string) error { return g.explain(c.Context(), s, args[0], recursive) },
	}
	c.Flags().BoolVar(&recursive, "recursive", false, "show the fields of fields, by name and type alone")
	return c
}

func (g *globals) explain(ctx context.Context, s streams, what string, recursive bool) error {
	kind, path, _ := strings.Cut(what, ".")
	if err := naming.ValidKind(kind); err != nil {
		hint := "write a kind such as Sysctl, and a field behind a dot"
		if near := document.SuggestKind(kind); near != "" {
			hint = "did you mean " + near + "?"
		}
		return &exitError{code: report.ExitUsage, message: fmt.Sprintf("%q is not the name of a kind: %s", kind, err), hint: hint}
	}
	apiVersion, text := v1alpha1.APIVersion, schema.For(v1alpha1.APIVersion, kind)
	if text == nil {
		o, err := g.session(s)
		if err != nil {
			return err
		}
		if apiVersion, text, err = session.Schema(ctx, o, kind); err != nil {
			return err
		}
	}
	root, err := readSchema(text)
	if err != nil {
		return &exitError{code: report.ExitFailed, message: fmt.Sprintf("the JSON schema of %s cannot be read: %s", kind, err)}
	}
	field, err := root.find(path)
	if err != nil {
		return &exitError{code: report.ExitUsage, message: kind + ": " + err.Error(), hint: "machineadm explain " + kind + " --recursive lists the fields"}
	}
	return field.write(s.out, explained{kind: kind, apiVersion: apiVersion, path: path, recursive: recursive})
}
