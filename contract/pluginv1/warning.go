package pluginv1

// Warning is a message for people that stops nothing.
type Warning struct {
	Field   string // field path, or empty
	Message string
}
