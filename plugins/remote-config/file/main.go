// Command machineadm-remote-configuration-provider-file reads the streams of RemoteConfig documents from local files.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/machineadm/machineadm/internal/trust"
	"github.com/machineadm/machineadm/internal/version"
	"github.com/machineadm/machineadm/sdk"
)

func main() { sdk.Main(source()) }

func source() sdk.Source {
	return sdk.Source{Name: "file", Version: version.String(), OS: []string{"linux", "windows"}, Validate: validate, Fetch: fetch}
}

// validate returns all violations of a location.
func validate(l sdk.Location) []sdk.Violation {
	_, all := sdk.ProviderConfig[struct{}](l.ProviderConfig)
	if path, err := pathOf(l.URI); err != nil || !isLocal(path) {
		all = append(all, sdk.Violation{
			Field: l.Field, Message: "is not an absolute path of a local file",
			Hint: map[bool]string{
				false: "write it as /PATH or file:///PATH", true: `write it as C:\PATH or file:///C:/PATH`,
			}[runtime.GOOS == "windows"],
		})
	}
	return all
}

// pathOf returns the path that a URI names: a path or a file URL (RFC 8089) without a host.
func pathOf(uri string) (string, error) {
	if !strings.HasPrefix(strings.ToLower(uri), "file:") {
		return uri, nil
	}
	u, err := url.Parse(uri)
	if err != nil || u.Host != "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Opaque != "" {
		return "", errors.New("not the URL of a local file")
	}
	if runtime.GOOS == "windows" {
		return filepath.FromSlash(strings.TrimPrefix(u.Path, "/")), nil
	}
	return u.Path, nil
}

// isLocal reports whether a path is absolute; on Windows, below a drive and not a device or a share.
func isLocal(path string) bool {
	return filepath.IsAbs(path) && !strings.ContainsRune(path, 0) && (runtime.GOOS != "windows" || len(filepath.VolumeName(path)) == len("C:"))
}

// fetch opens the file by the rules of a stream that is given to the host.
func fetch(_ context.Context, l sdk.Location) (sdk.Object, error) {
	path, err := pathOf(l.URI)
	if err != nil {
		return sdk.Object{}, err
	}
	file, err := trust.Open(path, trust.Stream())
	if err != nil {
		return sdk.Object{}, sdk.At(failure(err), l.Field)
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close() // only read from
		return sdk.Object{}, sdk.At(failure(err), l.Field)
	}
	return sdk.Object{Revision: info.ModTime().UTC().Format(time.RFC3339Nano), Body: &body{File: file, opened: info}}, nil
}

// failure explains why the file cannot be opened. The path is in the details alone: it is a value of the document.
func failure(err error) error {
	refused, isRefused := errors.AsType[*trust.Error](err)
	switch {
	case isRefused:
		return sdk.WithDetail(sdk.Precondition("the file or a directory above it "+refused.Problem,
			"see details.json for the path and the remedy: only trusted users may be able to change the file"), fmt.Sprintf("cause: %v: %s", refused, refused.Remedy))
	case errors.Is(err, fs.ErrNotExist):
		return sdk.Answered(sdk.WithDetail(sdk.Precondition("the file does not exist", "check the location, and that the file is there"), err.Error()), http.StatusNotFound)
	case errors.Is(err, trust.ErrDirectory):
		return sdk.WithDetail(sdk.Precondition("the file is a directory", "name a file in it"), err.Error())
	}
	cause := err
	if outer, ok := errors.AsType[*fs.PathError](err); ok {
		cause = outer.Err
	}
	return sdk.WithDetail(sdk.Precondition("the file cannot be opened: "+cause.Error(), "see details.json"), err.Error())
}

// body is a file that must not change while it is read.
type body struct {
	*os.File
	opened fs.FileInfo
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.File.Read(p)
	if err == nil {
		return n, nil
	}
	if !errors.Is(err, io.EOF) {
		return n, sdk.Precondition("the file cannot be read", "check the disk and its file system")
	}
	if now, err := b.Stat(); err != nil || now.Size() != b.opened.Size() || !now.ModTime().Equal(b.opened.ModTime()) {
		return n, sdk.Retry(0, "the file changed while it was read")
	}
	return n, io.EOF
}
