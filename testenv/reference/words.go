package reference

import (
	"go/ast"
	"regexp"
	"strings"
)

// describe says in words what a field holds, and returns the struct whose fields come next, if there is one.
func (s *Source) describe(f *Field, pkg string, t ast.Expr) (below string) {
	f.Type, f.Value, below = s.words(pkg, t, false)
	f.Secret = strings.HasSuffix(f.Value, ".Secret")
	return below
}

// words: of a list or a mapping it is the elements that are named.
func (s *Source) words(pkg string, t ast.Expr, plural bool) (words, value, below string) {
	choose := func(one, many string) string {
		if plural {
			return many
		}
		return one
	}
	switch t := t.(type) {
	case *ast.StarExpr:
		return s.words(pkg, t.X, plural)
	case *ast.ArrayType:
		words, value, below = s.words(pkg, t.Elt, true)
		return choose("list of ", "lists of ") + words, value, below
	case *ast.MapType:
		words, value, below = s.words(pkg, t.Value, true)
		return choose("mapping of names to ", "mappings of names to ") + words, value, below
	case *ast.InterfaceType:
		return "anything", "", ""
	case *ast.Ident:
		if basic := plain(t.Name, plural); basic != "" {
			return basic, "", ""
		}
	}
	name := qualified(pkg, t)
	switch {
	case s.aliases[name] != nil:
		return s.words(pkg, s.aliases[name], plural)
	case name == "json.RawMessage":
		return "anything", "", ""
	case strings.HasSuffix(name, ".Secret"):
		return choose("secret", "secrets"), name, ""
	case s.structs[name] != nil:
		return choose("mapping", "mappings"), "", name
	case s.values[name] != nil:
		return short(name), name, ""
	}
	return short(name), "", ""
}

func short(name string) string { return name[strings.LastIndex(name, ".")+1:] }

// plain is a type of Go in the words of a document.
func plain(name string, plural bool) string {
	word := map[string]string{"string": "string", "bool": "boolean", "any": "anything"}[name]
	if word == "" && regexp.MustCompile(`^u?int\d*$`).MatchString(name) {
		word = "integer"
	}
	if word == "" && strings.HasPrefix(name, "float") {
		word = "number"
	}
	if plural && word != "" && word != "anything" {
		word += "s"
	}
	return word
}

// unnamed takes the name of the field off its comment: the row has it.
func unnamed(name, comment string) string {
	rest, ok := strings.CutPrefix(comment, name+" ")
	if !ok || regexp.MustCompile(`^(of|for|in|to|and|or)\b`).MatchString(rest) { // no sentence about the field
		return comment
	}
	for _, verb := range []string{"is ", "are "} {
		rest = strings.TrimPrefix(rest, verb)
	}
	if regexp.MustCompile(`^(\S*[A-Z:]|\S+(,| or| if)\s)`).MatchString(rest) {
		return rest // it begins with a value, as a document has it
	}
	return strings.ToUpper(rest[:1]) + rest[1:]
}

// divide takes the sentences that tell the default out of a comment.
func divide(comment string) (about, fallback string) {
	isDefault := regexp.MustCompile(`^(Default|Defaults to|Left out|Unset|When absent|Absent|If empty|Empty)\b`)
	var rest, defaults []string
	for _, sentence := range sentences(comment) {
		if isDefault.MatchString(sentence) {
			sentence = strings.TrimPrefix(strings.TrimPrefix(sentence, "Defaults to "), "Default is ")
			defaults = append(defaults, strings.TrimPrefix(strings.TrimPrefix(sentence, "Default: "), "Default "))
		} else {
			rest = append(rest, sentence)
		}
	}
	return strings.Join(rest, " "), strings.TrimSuffix(strings.Join(defaults, " "), ".")
}

// sentences ends one at a full stop that a capital letter follows.
func sentences(text string) []string {
	text = strings.Join(strings.Fields(text), " ")
	end := regexp.MustCompile(`[.:]\)? [A-Z]`)
	var out []string
	for from := 0; ; {
		found := end.FindStringIndex(text[from:])
		if found == nil {
			return append(out, text[from:])
		}
		if text[from+found[0]] == ':' { // what follows belongs to it
			next := end.FindStringIndex(text[from+found[1]:])
			if next == nil {
				return append(out, text[from:])
			}
			found = []int{found[1] + next[0], found[1] + next[1]}
		}
		out = append(out, text[from:from+found[1]-2])
		from += found[1] - 1
	}
}
