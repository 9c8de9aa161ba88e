package machine

// NewSystemd returns the live service manager; booted is the path that exists where systemd runs.
func NewSystemd(commands Runner, booted string) Services {
	return &systemd{commands: commands, booted: booted}
}

// ParseInstall returns the links of a unit file.
func ParseInstall(data []byte, unit string) ([]string, error) {
	section, err := parseInstall(data)
	return section.links(unit), err
}
