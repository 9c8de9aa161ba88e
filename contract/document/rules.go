package document

import (
	"errors"

	"go.yaml.in/yaml/v4"
)

// rules bounds the parser's recursion, and replaces aliases by null. The checker refuses each alias at its position, which
// requires a tree, and the parser would fail at an undefined alias.
type rules struct{ tooDeep bool }

var errTooDeep = errors.New("too deep")

// CheckDepth counts flow and block collections separately; the checker counts them together.
func (r *rules) CheckDepth(depth int, _ *yaml.DepthContext) error {
	if depth > MaxDepth {
		r.tooDeep = true
		return errTooDeep
	}
	return nil
}

func (r *rules) CheckAlias(int, int) error { return nil }

func (r *rules) NewAliasDataContext(yaml.AliasDataServices) (yaml.AliasDataContext, error) {
	return noAliases{}, nil
}

type noAliases struct{}

func (noAliases) BeginDocument() error                  { return nil }
func (noAliases) DefineAnchor(string, *yaml.Node) error { return nil }
func (noAliases) EndDocument() error                    { return nil }

func (noAliases) ResolveAlias(string) (*yaml.Node, bool, error) {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}, true, nil
}
