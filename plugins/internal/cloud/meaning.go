package cloud

// Meaning is what an answer that is no success says beyond its status.
type Meaning struct {
	Status int    // counts instead of the status of the answer; 0 leaves that
	Code   string // of the service, for the message; never other text of the answer
	Hint   string // replaces that of the status
}
