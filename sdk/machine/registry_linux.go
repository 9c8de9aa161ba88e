package machine

func liveRegistry() Registry { return unavailable{ErrUnsupported} }
