// Package texts gathers every text that the product can show when something is wrong, so that all of them can be read
// in one place (docs/reference/errors.md) and be held to the rules of the house.
//
// It follows the values: a text is what comes, through variables, parameters, results and fields, to one of the places
// where errors are made (errors.New, fmt.Errorf, a field called Message or Hint, the result of an Error method, the log,
// standard error). A constructor of errors is therefore known by what it does, not by its name.
package texts

import (
	"cmp"
	"context"
	"go/ast"
	"go/doc"
	"slices"
	"strings"
)

// Room is a package that has texts.
type Room struct {
	Path  string // import path
	About string // the first sentence of its documentation
	Texts []Text
}

// Text is one text, its interpolated values written as ….
type Text struct {
	Role Role
	Text string
	// Hint is what the same place says to do about a message.
	Hint string
	// Secret is an expression that is interpolated and must not be.
	Secret string
}

// Role says what a text is for.
type Role int

// The roles. A text that is a message, and elsewhere in the package a part of one, counts as a message.
const (
	Message Role = iota + 1
	Hint
	Log  // a line of the log, or said on standard error beside the messages
	Part // completes a message or a hint
)

// Collect gathers the texts of the packages that the patterns name, seen from dir, on every platform.
func Collect(ctx context.Context, dir string, patterns ...string) ([]Room, error) {
	packages, err := list(ctx, dir, patterns)
	if err != nil {
		return nil, err
	}
	about, found := map[string]string{}, map[string]map[Text]bool{}
	for _, goos := range platforms() {
		sources, err := load(packages, goos)
		if err != nil {
			return nil, err
		}
		c := &collector{graph: graph{}, seen: map[visit]bool{}}
		for _, s := range sources {
			c.graph.build(s)
		}
		for _, s := range sources {
			about[s.path] = cmp.Or(about[s.path], synopsis(s.files))
			c.seed(s)
		}
		c.drain()
		for at, t := range c.paired() {
			if found[at] == nil {
				found[at] = map[Text]bool{}
			}
			found[at][t] = true
		}
	}
	var rooms []Room
	for path, all := range found {
		rooms = append(rooms, Room{Path: path, About: about[path], Texts: order(all)})
	}
	slices.SortFunc(rooms, func(a, b Room) int { return cmp.Compare(a.Path, b.Path) })
	return rooms, nil
}

func synopsis(files []*ast.File) string {
	for _, f := range files {
		if f.Doc != nil {
			return new(doc.Package).Synopsis(f.Doc.Text())
		}
	}
	return ""
}

// order sorts, and leaves out what is said better beside it: a message or a hint alone where there is the pair, a part
// that is also a whole.
func order(all map[Text]bool) []Text {
	messages, paired, whole := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for t := range all {
		if t.Hint != "" {
			messages[t.Text], paired[t.Hint] = true, true
		}
		if t.Role != Part {
			whole[t.Text], whole[t.Hint] = true, true
		}
	}
	var out []Text
	for t := range all {
		switch {
		case t.Secret != "":
		case t.Role == Message && t.Hint == "" && messages[t.Text],
			t.Role == Hint && paired[t.Text],
			t.Role == Part && whole[t.Text]:
			continue
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b Text) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), strings.Compare(a.Text, b.Text), strings.Compare(a.Hint, b.Hint),
			strings.Compare(a.Secret, b.Secret))
	})
	return out
}
