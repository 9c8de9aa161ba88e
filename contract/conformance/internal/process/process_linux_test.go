package process

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestFamily: a command shows, while it runs and when it is gone, and what everybody sees of it is read. Not parallel: the
// family is that of this process.
func TestFamily(t *testing.T) {
	before := Family(os.Getpid())
	if Family(os.Getpid()).Grew(before) {
		t.Fatal("the family grows by looking at it")
	}
	if err := exec.CommandContext(t.Context(), "true").Run(); err != nil {
		t.Fatal(err)
	}
	gone := Family(os.Getpid())
	if !gone.Grew(before) {
		t.Error("a command that is gone is not seen")
	}
	command := exec.CommandContext(t.Context(), "cat", "-")
	command.Args = []string{"cat", "-", "/dev/null"}
	command.Env = []string{"WORD=inthevironment"}
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	now := Family(os.Getpid())
	if !now.Grew(gone) {
		t.Error("a command that runs is not seen")
	}
	if shown := string(now.Shown()); !strings.Contains(shown, "inthevironment") || !strings.Contains(shown, "cat\x00-\x00/dev/null") {
		t.Error("the arguments or the environment of a command are not seen")
	}
	if err := input.Close(); err != nil {
		t.Error(err)
	}
	if err := command.Wait(); err != nil {
		t.Error(err)
	}
}
