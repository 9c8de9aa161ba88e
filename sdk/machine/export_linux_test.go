package machine

// NewSystemd is the live service manager for tests: booted is the file that stands for a running systemd.
func NewSystemd(commands Runner, booted string) Services {
	return &systemd{commands: commands, booted: booted}
}

// ParseInstall shows whether a unit file is understood, and the links that it asks for.
func ParseInstall(data []byte, unit string) ([]string, error) {
	section, err := parseInstall(data)
	return section.links(unit), err
}
