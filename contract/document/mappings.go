package document

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// CheckMappings checks YAML that another program reads: each document must be a mapping, and no mapping in it may have a key twice.
// Anchors and tags are allowed, as that program may allow them. An error has the line of the text, 0 if that is not known, and does not
// quote the text.
func CheckMappings(text []byte) (line int, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for n := 0; ; n++ {
		var value any
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) && n > 0 {
			return 0, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			message := "is not YAML"
			if strings.Contains(err.Error(), "already defined") {
				message = "has a key twice in a mapping"
			}
			if found := regexp.MustCompile(`line (\d+)`).FindStringSubmatch(err.Error()); found != nil {
				line, _ = strconv.Atoi(found[1]) // digits
			}
			return line, errors.New(message)
		}
		switch value.(type) {
		case map[string]any, map[any]any:
		default:
			return 0, errors.New("is no mapping of keys to values in YAML")
		}
	}
}
