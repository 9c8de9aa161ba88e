package reporting

import (
	"fmt"
	"io"
	"strings"

	"github.com/machineadm/machineadm/internal/trust"
)

// Cleaned writes the files that clean has removed, and how many choices of a provider the image keeps.
func Cleaned(out io.Writer, removed []string, choices int) error {
	var b strings.Builder
	for _, path := range removed {
		fmt.Fprintln(&b, "removed", trust.Quote(path))
	}
	if len(removed) == 0 {
		fmt.Fprintln(&b, "nothing to remove")
	} else {
		fmt.Fprintf(&b, "cleaned; providers kept for the first boot: %d\n", choices)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
