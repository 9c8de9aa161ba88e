package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/resume"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/state"
	"github.com/machineadm/machineadm/internal/trust"
)

// sealFlags are the flags of seal.
type sealFlags struct {
	root, output string
	discard      bool
}

// sealed is the result of seal.
type sealed struct {
	Removed []string          `json:"removed"` // absolute paths
	Choices map[string]string `json:"choices"` // the providers that the image keeps, by KIND/NAME
}

func newSeal(g *globals, s streams) *cobra.Command {
	o := &sealFlags{}
	c := &cobra.Command{
		Use: "seal", Short: "Remove the state of this machine before it becomes an image", Args: noArguments,
		Long: "seal removes what belongs to this machine alone, before it becomes an image: state, reports, a run that waits, caches.\n" +
			"The providers that were chosen move to the image, so that the first boot of a clone does not choose others. seal can be repeated.",
		Example: "  machineadm apply --path node.yaml --phase preparation && machineadm seal\n  machineadm seal --root /mnt/image",
		RunE:    func(c *cobra.Command, _ []string) error { return g.seal(c.Context(), s, o) },
	}
	bindOutput(c, &o.output)
	c.Flags().StringVar(&o.root, "root", "", "`DIR` of an image to seal instead of the live machine")
	_ = c.MarkFlagDirname("root") // the flag exists
	c.Flags().BoolVar(&o.discard, "discard-run", false, "discard a run that waits for a reboot or failed after it")
	return c
}

func (g *globals) seal(ctx context.Context, s streams, o *sealFlags) error {
	if err := checkOutput(o.output); err != nil {
		return err
	}
	log, err := g.logger(s.err)
	if err != nil {
		return err
	}
	root, err := absoluteRoot(o.root)
	if err != nil {
		return err
	}
	p := &place{root: root, image: root, log: log}
	defer p.close()
	prepared, err := g.lockPrepared(ctx, p)
	if err != nil {
		return err
	}
	if why, reboot, err := prepared.Unfinished(); err != nil {
		return stateExit(err)
	} else if why != "" && !o.discard {
		return unfinished(why, reboot)
	}
	p.cleanUp()
	if err := p.writes.CleanUp(); err != nil { // before the record is removed
		return stateExit(err)
	}
	var result sealed
	if result.Removed, err = g.unseat(ctx, p); err != nil {
		return stateExit(err)
	}
	var files []string
	if files, result.Choices, err = prepared.Seal(); err != nil {
		return stateExit(err)
	}
	result.Removed = append(result.Removed, files...)
	return result.show(s, o.output)
}

// unfinished refuses to seal half of a preparation: a clone would not do the rest of it.
func unfinished(why string, reboot bool) error {
	exit := &exitError{code: report.ExitPrecondition, message: why, hint: "run machineadm apply --resume"}
	if reboot {
		exit.code, exit.hint = report.ExitReboot, "reboot, so that it continues; without --reboot, apply the stream again"
	}
	exit.hint += "; then seal again, or discard it with --discard-run"
	return exit
}

// lockPrepared takes the lock and returns the machine or image, whose directories it sets in p.
func (g *globals) lockPrepared(ctx context.Context, p *place) (prepared state.Prepared, err error) {
	if err := g.directories(p, run.ModeApply); err != nil {
		return prepared, err
	}
	if err := g.openHook(p); err != nil {
		return prepared, err
	}
	if err := p.takeLock(); err != nil {
		return prepared, err
	}
	prepared = state.Prepared{Root: p.root, BootID: bootID("")}
	if prepared.MachineID, err = p.machineID(ctx); err != nil {
		return prepared, stateExit(err)
	}
	if p.root != "" {
		if err := g.inside(p); err != nil {
			return prepared, err
		}
	}
	prepared.StateDir, prepared.RunDir = p.stateDir, p.runDir
	p.writes = p.newWrites()
	return prepared, nil
}

// inside sets the directories of an image, which has state if machineadm ran in it as in a machine.
func (g *globals) inside(p *place) (err error) {
	for _, dir := range []struct {
		to              *string
		given, standard string
	}{{&p.stateDir, g.stateDir, defaultStateDir()}, {&p.runDir, g.runDir, defaultRunDir()}} {
		if dir.given != "" {
			continue
		}
		if *dir.to, err = state.Below(p.root, dir.standard); err != nil {
			return stateExit(err)
		}
	}
	if lock := filepath.Join(p.runDir, "lock"); state.Held(lock) {
		return &exitError{
			code: report.ExitLocked, message: "a run in the image is in progress: the lock " + lock + " is held", hint: "wait for it to end",
		}
	}
	return nil
}

// unseat removes what a run leaves outside of the directories of the live machine: the start of a waiting run, and the sentinel.
func (g *globals) unseat(ctx context.Context, p *place) (removed []string, err error) {
	if p.root != "" {
		return nil, nil
	}
	starter, err := g.starter(p)
	if err != nil {
		return nil, err
	}
	files := append(resume.Files(), newSentinel().Path())
	there := func(path string) bool { _, err := os.Lstat(path); return !errors.Is(err, fs.ErrNotExist) }
	files = slices.DeleteFunc(files, func(path string) bool { return !there(path) })
	err = errors.Join(starter.Remove(ctx), newSentinel().Remove())
	if reports, none := g.reportStarter(p); none == nil {
		err = errors.Join(err, reports.Remove(ctx))
	}
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(files, there), nil // a unit of the operating system stays
}

// show writes what was removed and kept.
func (r sealed) show(s streams, output string) error {
	if output == "json" {
		if r.Removed == nil {
			r.Removed = []string{}
		}
		return writeJSON(s.out, r)
	}
	for _, path := range r.Removed {
		if _, err := fmt.Fprintln(s.out, "removed", trust.Quote(path)); err != nil {
			return err
		}
	}
	if len(r.Removed) == 0 {
		_, err := fmt.Fprintln(s.out, "nothing to remove")
		return err
	}
	_, err := fmt.Fprintf(s.out, "sealed; providers kept for the first boot: %d\n", len(r.Choices))
	return err
}
