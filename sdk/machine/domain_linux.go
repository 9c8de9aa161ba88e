package machine

func liveDomain() (string, error) { return unavailable{ErrUnsupported}.domain() }
