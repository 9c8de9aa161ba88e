package main

import (
	_ "embed"
	"fmt"
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/plugins/sysctl/internal/sysctld"
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
func numbersOf(key sysctld.Key) (n numbers, known bool) {
	for line := range strings.Lines(valueTable) {
		f := strings.Fields(line)
		pattern := strings.ReplaceAll(f[0], ".", "/")
		if ok, _ := path.Match(pattern, string(key)); !ok || f[0] == "#" { // each pattern is valid
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

// valueFault says why no kernel takes a value of a parameter, or takes a part of it; "" if it does, or if the table has not the parameter.
func valueFault(key sysctld.Key, value string) (message, hint string) {
	n, known := numbersOf(key)
	if !known {
		return "", ""
	}
	given := strings.Fields(value)
	for _, text := range given {
		if !wholeNumber.MatchString(text) {
			return "is not " + n.form() + ", and the kernel does not take it", "write digits alone: no unit, no word, no comment"
		}
		if !n.have(text) {
			return "is not " + n.form() + ", and the kernel does not take it", ""
		}
	}
	if len(given) != n.count {
		return fmt.Sprintf("has not %d numbers, and the kernel takes a part of them or none", n.count), "write all of them with blanks between"
	}
	if strings.HasSuffix(string(key), "_range") {
		first, _ := strconv.ParseInt(given[0], 0, 64)
		if last, _ := strconv.ParseInt(given[1], 0, 64); first > last {
			return "is a range that ends before it begins, and the kernel does not take it", "write the smaller number first"
		}
	}
	return "", ""
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
