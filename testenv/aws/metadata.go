package aws

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Metadata is the metadata service of an instance with version 2 alone: it answers nothing without a token, and refuses what the
// service of EC2 refuses. Source: the EC2 User Guide, "Use the Instance Metadata Service".
type Metadata struct {
	Region, Role     string
	ID, Secret       string
	Token            string
	mutex            sync.Mutex
	sessions         map[string]time.Time
	Sessions, Served int
}

// maxTTL is six hours, as in EC2.
const maxTTL = 21600

// ServeHTTP implements http.Handler.
func (m *Metadata) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if r.Header.Get("X-Forwarded-For") != "" || r.Host != "169.254.169.254" && r.Host != "[fd00:ec2::254]" {
		w.WriteHeader(http.StatusForbidden) // a proxy
		return
	}
	if r.URL.Path == "/latest/api/token" {
		m.open(w, r)
		return
	}
	end, known := m.sessions[r.Header.Get("X-Aws-Ec2-Metadata-Token")]
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case !known || time.Now().After(end):
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	m.Served++
	answer, found := map[string]string{
		"/latest/meta-data/placement/region":                   m.Region,
		"/latest/meta-data/placement/availability-zone":        m.Region + "a",
		"/latest/meta-data/placement/availability-zone/":       m.Region + "a",
		"/latest/meta-data/iam/security-credentials/":          m.Role,
		"/latest/meta-data/iam/security-credentials":           m.Role,
		"/latest/meta-data/iam/security-credentials/" + m.Role: m.keys(),
	}[r.URL.Path]
	if !found || answer == "" || m.Role == "" && strings.Contains(r.URL.Path, "/iam/") {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = fmt.Fprint(w, answer) // the client checks
}

func (m *Metadata) open(w http.ResponseWriter, r *http.Request) {
	ttl, err := strconv.Atoi(r.Header.Get("X-Aws-Ec2-Metadata-Token-Ttl-Seconds"))
	switch {
	case r.Method != http.MethodPut:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case err != nil || ttl < 1 || ttl > maxTTL:
		w.WriteHeader(http.StatusBadRequest)
	default:
		token := rand.Text() + "=="
		if m.sessions == nil {
			m.sessions = map[string]time.Time{}
		}
		m.sessions[token] = time.Now().Add(time.Duration(ttl) * time.Second)
		m.Sessions++
		w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", strconv.Itoa(ttl))
		_, _ = fmt.Fprint(w, token) // the client checks
	}
}

// keys returns the document of the role's keys.
func (m *Metadata) keys() string {
	const form = "2006-01-02T15:04:05Z"
	now := time.Now().UTC()
	data, err := json.Marshal(map[string]string{
		"Code": "Success", "LastUpdated": now.Format(form), "Type": "AWS-HMAC", "AccessKeyId": m.ID, "SecretAccessKey": m.Secret,
		"Token": m.Token, "Expiration": now.Add(time.Hour).Format(form),
	})
	if err != nil {
		return ""
	}
	return string(data)
}
