package aws

import (
	"cmp"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/lazyregexp"
	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/sdk"
)

// Config is the part of a providerConfig that the plugins for AWS have in common.
type Config struct {
	// Endpoint is the URL of the service, without a path, where it is not the one of AWS in the region.
	Endpoint string `json:"endpoint,omitempty"`
	// CA holds the certificates of the only authorities that are trusted, as PEM.
	CA string `json:"ca,omitempty"`
	// AccessKeyID and SecretAccessKey authenticate the machine. Without them the role of the EC2 instance does.
	AccessKeyID     string          `json:"accessKeyID,omitempty"`
	SecretAccessKey v1alpha1.Secret `json:"secretAccessKey,omitzero"`
	// SessionToken belongs to the keys of a session, which expire.
	SessionToken v1alpha1.Secret `json:"sessionToken,omitzero"`
}

// Secrets returns the field paths of the secrets of a providerConfig.
func Secrets() []string {
	all := document.SecretFields(reflect.TypeFor[Config]())
	for i := range all {
		all[i] = "spec.providerConfig." + all[i]
	}
	return all
}

// Regional is a Config of a service whose region the location does not always say.
type Regional struct {
	Config
	// Region is the region of the service. Without one it is taken from the location if this is an Amazon Resource Name, and else
	// of the instance.
	Region string `json:"region,omitempty"`
}

// In returns the region for a location, and "" for the instance's.
func (c Regional) In(location string) string { return cmp.Or(c.Region, RegionOf(location)) }

// Public returns what is no credential of c, in a region.
func (c Regional) Public(region string) Regional {
	return Regional{Config: Config{Endpoint: c.Endpoint, CA: c.CA}, Region: region}
}

// Validate returns the violations of the fields, with a location below the scheme of its URI.
func (c Regional) Validate(location string) []sdk.Violation {
	all, region := c.Config.Validate(), c.In(location)
	switch {
	case region == "" && c.AccessKeyID != "":
		all = append(all, sdk.Violation{
			Field: string(at.Field("region")), Message: "is missing",
			Hint: "give the region of the service, such as eu-central-1; only the role of an instance brings its own",
		})
	case region != "" && (!isRegion(region) || c.Endpoint == "" && !ofAWS().MatchString(region)):
		all = append(all, sdk.Violation{
			Field: string(at.Field("region")), Message: "is not the name of a region", Hint: "give one such as eu-central-1",
		})
	}
	return all
}

const at = document.Path("spec.providerConfig")

// Validate returns the violations of the fields.
func (c Config) Validate() []sdk.Violation {
	var all []sdk.Violation
	refuse := func(field, message, hint string) {
		all = append(all, sdk.Violation{Field: string(at.Field(field)), Message: message, Hint: hint})
	}
	if c.Endpoint != "" {
		u, violations := cloud.ParseURL(string(at.Field("endpoint")), c.Endpoint, false, false)
		all = append(all, violations...)
		if u != nil && (strings.Trim(u.Path, "/") != "" || u.RawQuery != "") {
			refuse("endpoint", "has a path or a query", "write it as https://HOST[:PORT]")
		}
	}
	all = append(all, cloud.TLS{CA: c.CA}.Validate(at)...)
	switch hasID, hasSecret := c.AccessKeyID != "", len(c.SecretAccessKey.Reveal()) > 0; {
	case hasID && !hasSecret:
		refuse("secretAccessKey", "is missing or empty", "give the key that belongs to accessKeyID, as {value: ...}")
	case !hasID && (hasSecret || !c.SessionToken.IsZero()):
		refuse("accessKeyID", "is missing", "give the ID that belongs to the secret key, or neither, for the role of the instance")
	case hasID && !regexp.MustCompile(`^[\w+=,.@-]{1,128}$`).MatchString(c.AccessKeyID):
		refuse("accessKeyID", "is not the ID of an access key", "give the ID alone, without spaces")
	}
	for i, secret := range []v1alpha1.Secret{c.SecretAccessKey, c.SessionToken} {
		if slices.ContainsFunc(secret.Reveal(), func(b byte) bool { return b <= ' ' || b >= 0x7f }) {
			refuse([]string{"secretAccessKey", "sessionToken"}[i], "has a space, a control character or one that is not ASCII", "remove the line feed at its end, for example")
		}
	}
	return all
}

// ofAWS matches the names of regions of AWS. Another service that has its API can have others.
var ofAWS = lazyregexp.New(`^[a-z]+(?:-[a-z]+)+-[0-9]+$`)

func isRegion(name string) bool {
	return regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`).MatchString(name)
}

// RegionOf returns the region of an Amazon Resource Name, and "" if the text is none.
func RegionOf(arn string) string {
	if parts := strings.Split(arn, ":"); len(parts) > 5 && parts[0] == "arn" && isRegion(parts[3]) {
		return parts[3]
	}
	return ""
}

// suffix returns the domain of the services of a region. Source: partitions.json of botocore.
func suffix(region string) string {
	for prefix, domain := range map[string]string{
		"cn-": "amazonaws.com.cn", "us-iso-": "c2s.ic.gov", "us-isob-": "sc2s.sgov.gov", "us-isof-": "csp.hci.ic.gov",
		"eu-isoe-": "cloud.adc-e.uk", "eusc-": "amazonaws.eu",
	} {
		if strings.HasPrefix(region, prefix) {
			return domain
		}
	}
	return "amazonaws.com"
}
