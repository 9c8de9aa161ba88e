package activate

import (
	"slices"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

func variables(entries ...string) Environment {
	var e Environment
	for _, entry := range entries {
		name, value, _ := strings.Cut(entry, "=")
		e.Variables = append(e.Variables, Variable{name, value})
	}
	return e
}

// TestEnvironmentMerge: current entries, desired variables, result. Every result is merged again.
func TestEnvironmentMerge(t *testing.T) {
	t.Parallel()
	type list = []string
	for name, c := range map[string]struct{ have, ask, want list }{
		"empty":                         {nil, nil, nil},
		"nothing desired":               {list{"B=1", "A=2"}, nil, list{"B=1", "A=2"}},
		"the first":                     {nil, list{"P=x"}, list{"P=x", "MACHINEADM_ADDED=P"}},
		"behind others'":                {list{"Z=1", "A=2"}, list{"P=x", "Q=y=z"}, list{"Z=1", "A=2", "P=x", "Q=y=z", "MACHINEADM_ADDED=P,Q"}},
		"changed where it is":           {list{"P=x", "Z=1", "MACHINEADM_ADDED=P", "A=2"}, list{"P=y"}, list{"P=y", "Z=1", "MACHINEADM_ADDED=P", "A=2"}},
		"one more":                      {list{"P=x", "MACHINEADM_ADDED=P", "A=2"}, list{"Q=y", "P=x"}, list{"P=x", "MACHINEADM_ADDED=Q,P", "A=2", "Q=y"}},
		"one less":                      {list{"P=x", "Q=y", "A=2", "MACHINEADM_ADDED=P,Q"}, list{"Q=y"}, list{"Q=y", "A=2", "MACHINEADM_ADDED=Q"}},
		"no more":                       {list{"P=x", "A=2", "MACHINEADM_ADDED=P"}, nil, list{"A=2"}},
		"no more, and nothing is left":  {list{"P=x", "MACHINEADM_ADDED=P"}, nil, nil},
		"others have it":                {list{"P=x", "A=2"}, list{"P=x"}, list{"P=x", "A=2"}},
		"others have it in lower case":  {list{"p=x"}, list{"P=x", "Q=y"}, list{"p=x", "Q=y", "MACHINEADM_ADDED=Q"}},
		"others keep theirs":            {list{"P=x", "Q=y", "MACHINEADM_ADDED=Q"}, nil, list{"P=x"}},
		"ours, whatever the case":       {list{"p=x", "machineadm_added=p"}, list{"P=y"}, list{"P=y", "MACHINEADM_ADDED=P"}},
		"ours, whatever the case, gone": {list{"P=x", "Machineadm_Added=p"}, nil, nil},
		"ours twice":                    {list{"P=1", "A=2", "p=3", "MACHINEADM_ADDED=P", "MACHINEADM_ADDED=P"}, list{"P=1"}, list{"P=1", "A=2", "MACHINEADM_ADDED=P"}},
		"others' twice":                 {list{"A=2", "A=3", "P=x", "P=x"}, list{"P=x"}, list{"A=2", "A=3", "P=x", "P=x"}},
		"ours was removed by hand":      {list{"A=2", "MACHINEADM_ADDED=P"}, list{"P=x"}, list{"A=2", "MACHINEADM_ADDED=P", "P=x"}},
		"removed by hand, not desired":  {list{"A=2", "MACHINEADM_ADDED=P"}, nil, list{"A=2"}},
		"similar names":                 {list{"XP=1", "P X=1", "=P=1", "ſ=1"}, list{"P=x", "S=y"}, list{"XP=1", "P X=1", "=P=1", "ſ=1", "P=x", "S=y", "MACHINEADM_ADDED=P,S"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(c.have)
			got, err := variables(c.ask...).merge("d", c.have)
			if err != nil || !slices.Equal(got, c.want) {
				t.Fatalf("got %q, %v, want %q", got, err, c.want)
			}
			if !slices.Equal(before, c.have) {
				t.Errorf("the list that is there was changed to %q", c.have)
			}
			if again, err := variables(c.ask...).merge("d", got); err != nil || !slices.Equal(again, got) {
				t.Errorf("the second time %q, %v, want %q", again, err, got)
			}
			if clean, err := variables().merge("d", got); err != nil || slices.ContainsFunc(clean, func(s string) bool { return strings.HasPrefix(s, addedName) }) {
				t.Errorf("with nothing desired %q is left, %v", clean, err)
			}
		})
	}
}

// TestEnvironmentOfOthers: what an administrator has set is neither changed nor quoted.
func TestEnvironmentOfOthers(t *testing.T) {
	t.Parallel()
	for _, have := range [][]string{
		{"P=canary"}, {"p=canary"}, {"P=x", "P=canary"}, {"P=canary", "Q=y", "MACHINEADM_ADDED=Q"}, {"P"}, {"P="},
	} {
		got, err := variables("P=x", "Q=y").merge("d", have)
		wantError(t, err, pluginv1.CodePrecondition, "the service d has the variable P with another value")
		if got != nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: %q, %v", have, got, err)
		}
	}
}

func TestEnvironmentIsChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ask  []Variable
		want string
	}{
		"no name":         {[]Variable{{"", "canary"}}, "its name"},
		"two in one":      {[]Variable{{"A=B", "canary"}}, "its name"},
		"another script":  {[]Variable{{"ſ", "canary"}}, "its name"},
		"NUL":             {[]Variable{{"A", "canary\x00B=1"}}, "control characters"},
		"CRLF":            {[]Variable{{"A", "canary\r\nB=1"}}, "control characters"},
		"line feed":       {[]Variable{{"A", "canary\n"}}, "control characters"},
		"not UTF-8":       {[]Variable{{"A", "canary\xff"}}, "not UTF-8"},
		"empty":           {[]Variable{{"A", ""}}, "empty"},
		"twice":           {[]Variable{{"A", "canary"}, {"a", "canary"}}, "given twice"},
		"the list itself": {[]Variable{{"machineadm_added", "canary"}}, "machineadm itself"},
	} {
		h := newFakeMachine(true, nil)
		h.variables = &Environment{c.ask}
		planned, err := h.run(noCrash())
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "canary") || planned != 0 {
			t.Errorf("%s: %d changes, %v", name, planned, err)
		}
	}
}

// TestEnvironmentDifference: of the current entries only names are shown.
func TestEnvironmentDifference(t *testing.T) {
	t.Parallel()
	h := newFakeMachine(true, map[string]string{pathA: "a\n"})
	h.environment = []string{"TOKEN=canary", "P=canary", "Q=canary", "R=z", "MACHINEADM_ADDED=P,Q,R"}
	e := variables("P=new", "R=z", "S=s")
	h.variables = &e
	todo, err := h.process(noCrash(), specs(map[string]string{pathA: "a\n"})...).plan(t.Context())
	if err != nil || todo.Do == nil {
		t.Fatalf("%+v, %v", todo, err)
	}
	const diff = "environment of d.service: P=new\nenvironment of d.service: S=s\nenvironment of d.service: Q removed\n"
	if todo.Diff != diff || todo.Summary != "change the configuration of d.service (its environment) and restart it" {
		t.Errorf("planned %+v", todo)
	}
	todo, err = h.process(noCrash(), specs(map[string]string{pathA: "b\n", pathB: "c\n"})...).plan(t.Context())
	if err != nil || todo.Do == nil || todo.Summary != "change the configuration of d.service (2 files and its environment) and restart it" {
		t.Errorf("%+v, %v", todo, err)
	}
	h.environment = []string{"P=new", "R=z", "S=s", "MACHINEADM_ADDED=P,Q"}
	todo, err = h.process(noCrash(), specs(map[string]string{pathA: "a\n"})...).plan(t.Context())
	if err != nil || todo.Do == nil || todo.Diff != "environment of d.service: content differs\n" {
		t.Errorf("%+v, %v", todo, err)
	}
}

// FuzzEnvironmentMerge: the entries of others keep their order, every desired variable is present, and a second merge changes
// nothing.
func FuzzEnvironmentMerge(f *testing.F) {
	f.Add("B=1\x00P=x\x00MACHINEADM_ADDED=P", "y", "z")
	f.Add("p=x\x00P=x\x00=C:=C:\\\x00MACHINEADM_ADDED\x00MACHINEADM_ADDED=,Q,", "x", "")
	f.Add("MACHINEADM_ADDED=MACHINEADM_ADDED,B\x00B=1", "x", "y")
	f.Fuzz(func(t *testing.T, text, p, q string) {
		have := slices.DeleteFunc(strings.Split(text, separator), func(entry string) bool { return entry == "" })
		var e Environment
		for name, value := range map[string]string{"P": p, "Q": q} {
			if value != "" {
				e.Variables = append(e.Variables, Variable{name, value})
			}
		}
		if e.check() != nil {
			return
		}
		got, err := e.merge("d", have)
		if err != nil {
			return
		}
		if again, err := e.merge("d", got); err != nil || !slices.Equal(got, again) {
			t.Errorf("%q becomes %q, then %q, %v", have, got, again, err)
		}
		added := append(addedIn(have), addedName)
		theirs := func(list []string) []string {
			return slices.DeleteFunc(slices.Clone(list), func(entry string) bool {
				name, _ := splitEntry(entry)
				asked := slices.ContainsFunc(e.Variables, func(v Variable) bool { return sameName(v.Name, name) })
				return asked || hasName(added, name)
			})
		}
		if before, after := theirs(have), theirs(got); !slices.Equal(before, after) {
			t.Errorf("of others there was %q, and is %q", before, after)
		}
		for _, v := range e.Variables {
			if !slices.ContainsFunc(got, func(entry string) bool {
				name, value := splitEntry(entry)
				return sameName(name, v.Name) && value == v.Value
			}) {
				t.Errorf("%s is missing in %q", v.Name, got)
			}
		}
	})
}
