package rig

// Checks to which others refer.
const (
	OutcomeName = "outcome"
	EventsName  = "events"
	ClaimsName  = "claims"
	ObjectName  = "object"
)
