package management

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Request is a request to the API server, as its audit log has it.
type Request struct {
	Verb      string    `json:"verb"`
	URI       string    `json:"requestURI"`
	UserAgent string    `json:"userAgent"`
	Received  time.Time `json:"requestReceivedTimestamp"`
	Stage     string    `json:"stage"`
	User      User      `json:"user"`
	Object    Object    `json:"objectRef"`
	Response  Response  `json:"responseStatus"`
	Notes     Notes     `json:"annotations"`
}

// User is the user of a request.
type User struct {
	Name   string   `json:"username"`
	Groups []string `json:"groups"`
}

// Object is what a request is about. It has no Name in a list, a watch, and the creation of an object with a generated one.
type Object struct {
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	Group       string `json:"apiGroup"`
	Version     string `json:"apiVersion"`
}

// Response is the answer to a request.
type Response struct {
	Code int `json:"code"`
}

// Notes are what the server added to a request.
type Notes struct {
	Decision string `json:"authorization.k8s.io/decision"` // allow or forbid
	Reason   string `json:"authorization.k8s.io/reason"`   // names the role and its binding
}

func (c *Cluster) auditLog() string { return filepath.Join(c.Dir, "audit.log") }

// Audit returns every request that the API server has answered, in the order of the answers. A watch counts twice: its
// stages are ResponseStarted and ResponseComplete.
func (c *Cluster) Audit(t testing.TB) []Request {
	t.Helper()
	text, err := os.ReadFile(c.auditLog())
	if err != nil {
		t.Fatal(err)
	}
	var all []Request
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) { // being written
			break
		}
		var r Request
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("audit log: %v", err)
		}
		all = append(all, r)
	}
	return all
}
