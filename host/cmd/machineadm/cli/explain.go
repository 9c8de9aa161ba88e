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
	recursive, example := false, ""
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
			return g.explain(c.Context(), s, explained{path: args[0], recursive: recursive, example: example})
		},
	}
	f := c.Flags()
	f.BoolVar(&recursive, "recursive", false, "show the fields of fields, by name and type alone")
	f.StringVar(&example, "example", "", "print a document of the kind: minimal, or full with every field")
	f.Lookup("example").NoOptDefVal = minimalExample
	return c
}

func (g *globals) explain(ctx context.Context, s streams, what explained) error {
	var kind string
	kind, what.path, _ = strings.Cut(what.path, ".")
	if err := naming.ValidKind(kind); err != nil {
		hint := "write a kind such as Sysctl, and a field behind a dot"
		if near := document.SuggestKind(kind); near != "" {
			hint = "did you mean " + near + "?"
		}
		return &exitError{code: report.ExitUsage, message: fmt.Sprintf("%q is not the name of a kind: %s", kind, err), hint: hint}
	}
	if what.example != "" {
		return writeExample(s, kind, what)
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
	field, err := root.find(what.path)
	if err != nil {
		return &exitError{code: report.ExitUsage, message: kind + ": " + err.Error(), hint: "machineadm explain " + kind + " --recursive lists the fields"}
	}
	what.kind, what.apiVersion = kind, apiVersion
	return field.write(s.out, what)
}
