package reporting

// Color enables colors.
type Color bool

// style holds the parameters of an ECMA-48 SGR sequence.
type style string

const (
	plain  style = ""
	bold   style = "1"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
	alarm  style = "1;31"
)

func (c Color) paint(s style, text string) string {
	if !c || s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}
