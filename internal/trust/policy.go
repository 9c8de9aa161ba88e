package trust

// Policy is the set of rules that a file is checked by: Program, Settings or Stream.
type Policy struct {
	executable   bool // the file must have an execute permission
	noLink       bool // the last step of the path must not be a link
	stickyParent bool // the file may lie in a sticky directory that others can write, such as /tmp
}

// Program is the policy for an executable. Every link is checked; a sticky directory may be an ancestor, but not the
// program's own directory.
func Program() Policy { return Policy{executable: true} }

// Settings is the policy for an installed configuration file: Program without the execute permission.
func Settings() Policy { return Policy{} }

// Stream is the policy for an input file, which must not be a link. It may lie in /tmp itself, where the proposal's
// cloud-init template puts it: the sticky bit prevents other users from replacing it.
func Stream() Policy { return Policy{noLink: true, stickyParent: true} }
