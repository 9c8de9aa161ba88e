package cycle

// B is used by A.
func B() { A() }
