package site

import (
	"context"
	"encoding/json"
	"errors"
	"html"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/tools"
)

// TestSite builds the site once. A warning of Hugo is an error.
func TestSite(t *testing.T) {
	needs.Tier(t, needs.System)
	root, err := tools.Root(".")
	require.NoError(t, err)
	for _, tree := range []string{"docs", "examples", "contract/v1alpha1/schema"} {
		require.NoError(t, needs.Record("tree", tree))
	}
	for _, files := range []string{"*.md", "contract/*.md", "plugins/*/*/*.md", "testenv/*.md", "testenv/*/plugin/*.md", "installer/image-builder/roles/*/*.md"} {
		pages, err := filepath.Glob(filepath.Join(root, files))
		require.NoError(t, err)
		require.NotEmpty(t, pages, files)
		for _, page := range pages { // Hugo reads them
			below, err := filepath.Rel(root, page)
			require.NoError(t, err)
			require.NoError(t, needs.Record("file", filepath.ToSlash(below)))
		}
	}
	hugo, err := tools.Path(t.Context(), os.Stderr, ".", "hugo")
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "site")
	build := exec.Command(hugo, "--source", filepath.Join(root, "docs/site"), "--destination", dir, "--panicOnWarning", "--quiet", "--noBuildLock")
	build.Env = append(os.Environ(), "HUGO_CACHEDIR="+t.TempDir(), "HUGO_RESOURCEDIR="+t.TempDir())
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	pages := read(t, dir)
	t.Run("every page of the documentation is there", func(t *testing.T) { complete(t, root, pages) })
	t.Run("links lead somewhere, and nothing is loaded from elsewhere", func(t *testing.T) { links(t, dir, pages) })
	t.Run("the schemas have stable locations", func(t *testing.T) { schemas(t, root, dir) })
	t.Run("a browser shows each page at the width of a phone and of a desktop, and finds words", func(t *testing.T) { browser(t, dir, pages) })
}

// read returns the text of each page by its path below the site.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	pages := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".html") {
			return err
		}
		below, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		pages[filepath.ToSlash(below)] = string(text)
		return err
	}))
	return pages
}

func complete(t *testing.T, root string, pages map[string]string) {
	t.Helper()
	heading, titles := regexp.MustCompile(`(?m)^# (.*)$`), 0
	for _, folder := range []string{"docs", "docs/reference", "docs/decisions"} {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.md"))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			page := path.Join(folder, strings.TrimSuffix(filepath.Base(file), ".md")+".html")
			if filepath.Base(file) == "README.md" {
				page = folder + "/index.html"
			}
			title := heading.FindSubmatch(text)
			require.NotNil(t, title, file)
			want := html.EscapeString(strings.ReplaceAll(string(title[1]), "`", ""))
			assert.True(t, strings.Contains(pages[page], "<title>"+want), "%s is not there, or has not the title %s", page, want)
			titles++
		}
	}
	assert.Greater(t, titles, 60)
}

// attribute finds what a page refers to. The tags of the pages have double quotes.
func attribute() *regexp.Regexp {
	return regexp.MustCompile(`<([a-z]+)\s[^>]*?\b(href|src|srcset)="([^"]*)"`)
}

func links(t *testing.T, dir string, pages map[string]string) {
	t.Helper()
	followed := 0
	for page, text := range pages {
		for _, found := range attribute().FindAllStringSubmatch(text, -1) {
			to, err := url.Parse(strings.ReplaceAll(found[3], "&amp;", "&"))
			if !assert.NoError(t, err, page) || to.Scheme == "data" {
				continue
			}
			if to.IsAbs() || to.Host != "" {
				assert.Equal(t, "a", found[1], "%s loads %s", page, found[3])
				continue
			}
			followed++
			at := page
			if to.Path != "" {
				at = path.Join(path.Dir(page), to.Path)
			}
			if _, err := os.Stat(filepath.Join(dir, at)); !assert.NoError(t, err, "%s: %s", page, found[3]) || to.Fragment == "" {
				continue
			}
			assert.True(t, strings.Contains(pages[at], `id="`+to.Fragment+`"`), "%s: %s leads to no heading", page, found[3])
		}
	}
	assert.Greater(t, followed, 1000)
}

func schemas(t *testing.T, root, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "contract/v1alpha1/schema/*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(dir, "schemas/v1alpha1", filepath.Base(file)))
		require.NoError(t, err)
		assert.Equal(t, want, got, file)
	}
}

// browser lets Chromium show testdata/probe.html, which opens the pages in frames and posts what it finds.
func browser(t *testing.T, dir string, pages map[string]string) {
	t.Helper()
	chromium := needs.Tool(t, "chromium")
	probe, err := os.ReadFile("testdata/probe.html")
	require.NoError(t, err)
	var names []string
	for page := range pages {
		names = append(names, page)
	}
	slices.Sort(names)
	posted := make(chan []byte, 1)
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(dir)))
	mux.HandleFunc("GET /probe.html", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write(probe)
	})
	mux.HandleFunc("GET /probe.json", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(names)
	})
	mux.HandleFunc("POST /probe", func(_ http.ResponseWriter, r *http.Request) {
		var result json.RawMessage
		if json.NewDecoder(r.Body).Decode(&result) == nil {
			posted <- result
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	c := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir="+t.TempDir(),
		"--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1", "--remote-debugging-port=0", server.URL+"/probe.html")
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = log.Close() })
	c.Stdout, c.Stderr = log, log
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		group := -c.Process.Pid // with its processes, which write below the directory of the test until they end
		assert.NoError(t, syscall.Kill(group, syscall.SIGKILL))
		_ = c.Wait()
		gone := func() bool { return errors.Is(syscall.Kill(group, 0), syscall.ESRCH) }
		assert.Eventually(t, gone, needs.Timeout(10*time.Second), 10*time.Millisecond)
	})
	var got struct {
		Shown  int      `json:"shown"`
		Faults []string `json:"faults"`
	}
	ctx, cancel := context.WithTimeout(t.Context(), needs.Timeout(2*time.Minute))
	defer cancel()
	select {
	case text := <-posted:
		require.NoError(t, json.Unmarshal(text, &got))
	case <-ctx.Done():
		text, _ := os.ReadFile(log.Name())
		t.Fatalf("the browser does not end: %s", text)
	}
	assert.Empty(t, got.Faults)
	assert.Equal(t, 2*len(names), got.Shown)
}
