package document

import "go.yaml.in/yaml/v4"

// place is a node of the tree of positions: the position of a key or of a list item.
type place struct {
	name     string
	at       Position
	list     bool
	children []place
}

// places parses the chunk again; nil if it has no document.
func (c chunk) places() *place {
	root, failure := c.parse()
	if root == nil || failure != nil {
		return nil
	}
	p := c.placeOf("", root, root)
	return &p
}

func (c chunk) placeOf(name string, at, n *yaml.Node) place {
	p := place{name: name, at: c.at(at)}
	switch n.Kind {
	case yaml.MappingNode:
		p.children = make([]place, 0, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			p.children = append(p.children, c.placeOf(n.Content[i].Value, n.Content[i], n.Content[i+1]))
		}
	case yaml.SequenceNode:
		p.list = true
		p.children = make([]place, 0, len(n.Content))
		for _, item := range n.Content {
			p.children = append(p.children, c.placeOf("", item, item))
		}
	}
	return p
}

// find returns the position of the longest existing prefix of a path.
func (p *place) find(path string) Position {
	for path != "" {
		s, rest, ok := nextStep(path)
		if !ok {
			return p.at
		}
		child := p.child(s)
		if child == nil {
			return p.at
		}
		p, path = child, rest
	}
	return p.at
}

func (p *place) child(s step) *place {
	if !s.named {
		if p.list && s.index < len(p.children) {
			return &p.children[s.index]
		}
		return nil
	}
	if p.list {
		return nil
	}
	for i := range p.children {
		if p.children[i].name == s.name {
			return &p.children[i]
		}
	}
	return nil
}
