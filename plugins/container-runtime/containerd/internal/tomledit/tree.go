package tomledit

import (
	"maps"
	"slices"
)

// form is how a document writes a key.
type form int

const (
	// leaf is a value that is no table.
	leaf form = iota
	// implied is a table that exists because a header names something below it.
	implied
	// headed is a table with a header of its own, or the document itself.
	headed
	// dotted is a table that exists because a dotted key names something below it.
	dotted
	// inline is an inline table.
	inline
	// series is an array of tables, element one of them.
	series
	element
)

// span is a range of bytes of a document.
type span struct{ from, to int }

// node is a key, and what is at it.
type node struct {
	parent *node
	name   string
	// spelling is the key as the document writes it first.
	spelling string
	form     form
	children []*node
	index    map[string]*node
	// home is the statement that made the node: its header, or the key/value that it is in.
	home int
	// pair is the key with its value, value the value alone. Only leaf and inline have them.
	pair, value span
	// content is what a leaf decodes to.
	content any
}

func (n *node) find(name string) *node { return n.index[name] }

func (n *node) add(child *node) *node {
	child.parent = n
	n.children = append(n.children, child)
	if n.index == nil {
		n.index = map[string]*node{}
	}
	n.index[child.name] = child
	return child
}

// keys returns a key of each node from above, exclusive, down to the node.
func (n *node) keys(above *node, key func(*node) string) []string {
	var keys []string
	for ; n != above && n.parent != nil; n = n.parent {
		keys = append(keys, key(n))
	}
	slices.Reverse(keys)
	return keys
}

// path returns the names of the keys; above nil is the whole path.
func (n *node) path(above *node) []string {
	return n.keys(above, func(n *node) string { return n.name })
}

// spelled is path in the document's spelling.
func (n *node) spelled(above *node) []string {
	return n.keys(above, func(n *node) string { return n.spelling })
}

// within reports whether the node is the other one or below it.
func (n *node) within(other *node) bool {
	for ; n != nil; n = n.parent {
		if n == other {
			return true
		}
	}
	return false
}

// container returns the inline table that the node is, or that a dotted key has put it into; nil when there is none.
func (n *node) container() *node {
	for ; n != nil; n = n.parent {
		switch n.form {
		case inline:
			return n
		case dotted:
		default:
			return nil
		}
	}
	return nil
}

// pairs returns the key/values of an inline table, or those below a table that dotted keys have put into one, in the
// order of the document.
func (n *node) pairs() []*node {
	var all []*node
	for _, child := range n.children {
		if child.form == dotted {
			all = append(all, child.pairs()...)
		} else {
			all = append(all, child)
		}
	}
	slices.SortFunc(all, func(a, b *node) int { return a.pair.from - b.pair.from })
	return all
}

// decoded returns the value of the node as a copy.
func (n *node) decoded() any {
	switch n.form {
	case leaf:
		return shared(n.content)
	case series:
		list := make([]any, 0, len(n.children))
		for _, child := range n.children {
			list = append(list, child.decoded())
		}
		return list
	default:
		table := make(map[string]any, len(n.children))
		for _, child := range n.children {
			table[child.name] = child.decoded()
		}
		return table
	}
}

// shared copies a value deeply.
func shared(value any) any {
	switch v := value.(type) {
	case []any:
		list := make([]any, 0, len(v))
		for _, each := range v {
			list = append(list, shared(each))
		}
		return list
	case map[string]any:
		table := maps.Clone(v)
		for key, each := range table {
			table[key] = shared(each)
		}
		return table
	}
	return value
}
