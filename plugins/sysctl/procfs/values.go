package main

import (
	_ "embed"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
)

//go:embed values.txt
var valueTable string

// numbers are what the kernel takes as the value of a parameter.
type numbers struct {
	count int
	least int64
	most  uint64
}

// numbersOf returns what the kernel takes as the value of a parameter that the table has.
func numbersOf(p parameter) (n numbers, known bool) {
	for line := range strings.Lines(valueTable) {
		f := strings.Fields(line)
		pattern := strings.ReplaceAll(f[0], ".", "/")
		if ok, _ := path.Match(pattern, string(p.key)); !ok || f[0] == "#" { // each pattern is valid
			continue
		}
		n = numbers{least: math.MinInt32, most: math.MaxInt32}
		n.count, _ = strconv.Atoi(f[1]) // digits, as the others
		if f[2] != "-" {
			n.least, _ = strconv.ParseInt(f[2], 10, 64)
		}
		switch f[3] {
		case "-":
		case "ulong":
			n.most = math.MaxUint64
		default:
			n.most, _ = strconv.ParseUint(f[3], 10, 64)
		}
		return n, true
	}
	return n, false
}

// wholeNumber is a number as the kernel reads it: decimal, octal behind 0, or hexadecimal behind 0x.
var wholeNumber = regexp.MustCompile(`^-?(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)$`)

// have reports whether a number is within the bounds.
func (n numbers) have(text string) bool {
	if strings.HasPrefix(text, "-") {
		value, err := strconv.ParseInt(text, 0, 64)
		return err == nil && value >= n.least
	}
	value, err := strconv.ParseUint(text, 0, 64)
	return err == nil && value <= n.most && (n.least < 0 || value >= uint64(n.least)) //nolint:gosec // it is not negative
}

// values refuses values that no kernel takes, or of which it takes a part.
func (r *resolver) values() {
	for _, p := range r.byKey {
		n, known := numbersOf(p)
		at, given := document.Path(p.field), strings.Fields(p.value)
		if !known || !p.explicit || r.refusedAt(at) {
			continue
		}
		for _, text := range given {
			switch {
			case !wholeNumber.MatchString(text):
				r.refuse(at, "is not "+n.form()+", and the kernel does not take it", "write digits alone: no unit, no word, no comment")
			case !n.have(text):
				r.refuse(at, "is not "+n.form()+", and the kernel does not take it", "")
			default:
				continue
			}
			break
		}
		if r.refusedAt(at) {
			continue
		}
		if len(given) != n.count {
			r.refuse(at, fmt.Sprintf("has not %d numbers, and the kernel takes a part of them or none", n.count), "write all of them with blanks between")
		}
		if strings.HasSuffix(string(p.key), "_range") && len(given) == 2 {
			first, _ := strconv.ParseInt(given[0], 0, 64)
			if last, _ := strconv.ParseInt(given[1], 0, 64); first > last {
				r.refuse(at, "is a range that ends before it begins, and the kernel does not take it", "write the smaller number first")
			}
		}
	}
}

func (r *resolver) refusedAt(field document.Path) bool {
	return slices.ContainsFunc(r.violations, func(v document.Violation) bool { return v.Field == string(field) })
}

// form names the numbers that the kernel takes.
func (n numbers) form() string {
	what := "a whole number"
	if n.count > 1 {
		what = fmt.Sprintf("%d whole numbers", n.count)
	}
	switch {
	case n.most < math.MaxInt32:
		return fmt.Sprintf("%s from %d to %d", what, n.least, n.most)
	case n.least > math.MinInt32:
		return fmt.Sprintf("%s of at least %d", what, n.least)
	}
	return what
}
