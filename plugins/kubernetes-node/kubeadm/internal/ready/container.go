package ready

// Container is a container of the control plane that does not run, or has just been started again.
type Container struct {
	// Name is the name of the component; empty if State is about all of them.
	Name string
	// State says what is wrong. It is free of output of the container.
	State string
	// Log is the end of its log, or what the runtime says of its end; empty for none.
	Log string
}
