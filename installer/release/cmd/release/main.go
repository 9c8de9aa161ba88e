// Command release writes a release from the programs in dist/OS-ARCH and the manual pages in dist/man.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/machineadm/machineadm/installer/release"
)

func main() {
	r := release.Release{Binaries: "dist", Platform: release.Platforms()}
	var kinds string
	var seconds int64
	flag.StringVar(&r.Version, "version", "", "version of the release, as v1.2.3")
	flag.StringVar(&r.Nfpm, "nfpm", "nfpm", "the program nfpm")
	flag.StringVar(&r.Key, "key", "", "file of the secret key, without password, that signs the manifest")
	flag.StringVar(&kinds, "kinds", "", "kinds of artifacts, separated by commas; default: all")
	flag.Int64Var(&seconds, "time", 0, "time of the commit, in seconds since 1970")
	flag.Uint64Var(&r.Sequence, "sequence", 0, "sequence of the manifest; default: the time")
	flag.TextVar(&r.Expires, "expires", time.Time{}, "time from which the manifest is refused, as 2027-01-31T00:00:00Z; default: never")
	flag.BoolVar(&r.Quick, "quick", false, "compress fast and badly")
	flag.Parse()
	r.Time, r.Out = time.Unix(seconds, 0), filepath.Join("dist", "release", r.Version)
	r.Kinds = strings.FieldsFunc(kinds, func(c rune) bool { return c == ',' })
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, &r)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, r *release.Release) (err error) {
	for _, program := range []string{r.Nfpm, "zstd", "xz", "mksquashfs", "wixl", "msibuild", "faketime"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w: run make deps on Debian, or install what testenv/deps/packages lists for installer/release", err)
		}
	}
	names, err := build(ctx, nil, "names")
	if err != nil {
		return err
	}
	for line := range strings.Lines(names) {
		name, _, _ := strings.Cut(line, " ")
		r.Names = append(r.Names, name)
	}
	dir, err := os.MkdirTemp("", "machineadm-share-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	bin := filepath.Join(r.Binaries, runtime.GOOS+"-"+runtime.GOARCH)
	installed, err := build(ctx, []string{"DESTDIR=" + dir, "PREFIX=/usr"}, "install", bin, "dist/man")
	if err != nil {
		return err
	}
	if !strings.HasPrefix(installed, "installed machineadm "+r.Version+" ") {
		return fmt.Errorf("the programs in dist are not of %s: run make release VERSION=%s (%s)", r.Version, r.Version, strings.TrimSpace(installed))
	}
	r.Share = filepath.Join(dir, "usr", "share")
	return r.Make(ctx, os.Stdout)
}

func build(ctx context.Context, env []string, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "testenv/tools/build.sh", arguments...)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	out, err := cmd.Output()
	return string(out), err
}
