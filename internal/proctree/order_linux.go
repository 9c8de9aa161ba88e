package proctree

import (
	"fmt"
	"strconv"
)

// guardName is argv[0] of a guard. It is also what people see in ps.
const guardName = "proctree-guard"

const firstExtraFile = 3

// order is what the host tells a guard, in its argv: names and numbers only, since everyone can read them.
type order struct {
	files     int    // extra files for the program, descriptors 3, 4, ...
	program   int    // descriptor of the open executable, or -1: path
	path      string // of the executable
	arguments []string
}

// lifeline is the descriptor of the pipe, which follows the program's files.
func (o order) lifeline() int { return firstExtraFile + o.files }

func (o order) encode() []string {
	return append([]string{guardName, strconv.Itoa(o.files), strconv.Itoa(o.program), o.path}, o.arguments...)
}

func decodeOrder(argv []string) (order, error) {
	const fixed = 4
	if len(argv) <= fixed {
		return order{}, fmt.Errorf("%d arguments are too few", len(argv))
	}
	files, err := strconv.Atoi(argv[1])
	if err != nil || files < 0 {
		return order{}, fmt.Errorf("the number of files is not a number")
	}
	program, err := strconv.Atoi(argv[2])
	if err != nil || program != -1 && program != firstExtraFile+files+1 {
		return order{}, fmt.Errorf("the program's descriptor is not a descriptor")
	}
	return order{files: files, program: program, path: argv[3], arguments: argv[fixed:]}, nil
}
