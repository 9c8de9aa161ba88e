package objectstores

import (
	"context"
	"crypto/rand"
	"encoding/xml"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/testenv/authority"
)

// S3 is a running versitygw. Its bucket keeps every version of an object, and only a signed request reads it.
type S3 struct {
	Server
	Region, AccessKey, SecretKey string
	presign                      string // program
}

// StartS3 starts versitygw, with TLS and a certificate of the authority unless that is nil.
func StartS3(t testing.TB, ca *authority.Authority) *S3 {
	t.Helper()
	return StartS3At(t, host, ca)
}

// StartS3At starts versitygw at an IP address of the machine.
func StartS3At(t testing.TB, address string, ca *authority.Authority) *S3 {
	t.Helper()
	s := &S3{
		Server: newServer(t, address, ca), Region: "eu-central-1", AccessKey: "AK" + rand.Text(), SecretKey: rand.Text(),
		presign: built(t, "s3/presign"),
	}
	dir := t.TempDir()
	at := func(name string) string {
		check(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		return filepath.Join(dir, name)
	}
	arguments := []string{"--quiet", "--region", s.Region, "--port", net.JoinHostPort(s.address, s.port)}
	if s.files != nil {
		arguments = append(arguments, "--cert", s.files[0], "--key", s.files[1])
	}
	// Not every file system of a temporary directory has the extended attributes that would have the metadata otherwise.
	arguments = append(arguments, "posix", "--sidecar", at("metadata"), "--versioning-dir", at("versions"), at("objects"))
	c := exec.CommandContext(context.WithoutCancel(t.Context()), built(t, "s3/versitygw"), arguments...)
	c.Env = append(os.Environ(), "ROOT_ACCESS_KEY_ID="+s.AccessKey, "ROOT_SECRET_ACCESS_KEY="+s.SecretKey)
	create := func() error {
		_, _, err := s.send(t.Context(), http.MethodPut, s.Endpoint+"/"+s.Bucket, nil)
		return err
	}
	start(t, c, create)
	s.configure(t, "versioning", `<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Status>Enabled</Status></VersioningConfiguration>`)
	return s
}

// AllowReading lets everyone read the objects of the bucket.
func (s *S3) AllowReading(t testing.TB) {
	t.Helper()
	s.configure(t, "policy", `{"Version": "2012-10-17", "Statement": [
		{"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::`+s.Bucket+`/*"}]}`)
}

// configure changes a setting of the bucket.
func (s *S3) configure(t testing.TB, name, value string) {
	t.Helper()
	_, _, err := s.send(t.Context(), http.MethodPut, s.Endpoint+"/"+s.Bucket+"?"+name+"=", []byte(value))
	check(t, err)
}

// Put writes an object and returns the headers of the answer: ETag and X-Amz-Version-Id are of the new version.
func (s *S3) Put(t testing.TB, key string, data []byte) http.Header {
	t.Helper()
	header, _, err := s.send(t.Context(), http.MethodPut, s.URL(key), data)
	check(t, err)
	return header
}

// Get returns the newest version of an object.
func (s *S3) Get(t testing.TB, key string) []byte {
	t.Helper()
	_, data, err := s.send(t.Context(), http.MethodGet, s.URL(key), nil)
	check(t, err)
	return data
}

// Keys returns the names of all objects.
func (s *S3) Keys(t testing.TB) []string {
	t.Helper()
	_, data, err := s.send(t.Context(), http.MethodGet, s.Endpoint+"/"+s.Bucket+"?list-type=2", nil)
	check(t, err)
	var listed struct {
		Keys []string `xml:"Contents>Key"`
	}
	check(t, xml.Unmarshal(data, &listed))
	return listed.Keys
}

// Presign returns the URL of an object with a signature for one method in its query, which is valid for some time from now on.
func (s *S3) Presign(t testing.TB, method, key string, valid time.Duration) string {
	t.Helper()
	signed, err := s.sign(t.Context(), method, s.URL(key), valid)
	check(t, err)
	return signed
}

func (s *S3) send(ctx context.Context, method, url string, body []byte) (http.Header, []byte, error) {
	signed, err := s.sign(ctx, method, url, starting)
	if err != nil {
		return nil, nil, err
	}
	return s.do(ctx, method, signed, "", body)
}

func (s *S3) sign(ctx context.Context, method, url string, valid time.Duration) (string, error) {
	c := exec.CommandContext(ctx, s.presign, method, url, s.Region, strconv.Itoa(int(valid.Seconds())))
	c.Env = []string{"AWS_ACCESS_KEY_ID=" + s.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s.SecretKey}
	c.Stderr = os.Stderr
	out, err := c.Output()
	return strings.TrimSpace(string(out)), err
}
