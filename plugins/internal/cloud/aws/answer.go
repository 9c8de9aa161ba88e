package aws

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/sdk"
)

const (
	maxError = 64 << 10
	// maxSkew is how far the clock may differ: AWS accepts a signature for 5 minutes, S3 for 15.
	maxSkew   = 5 * time.Minute
	clockHint = "check the clock of this machine: a signature with the wrong time is refused"
)

// explain returns the function that returns the meaning of an answer that is no success, by the code of the error in its body and
// by the clock of the server.
func explain(now func() time.Time) func(*http.Response) cloud.Meaning {
	return func(answer *http.Response) cloud.Meaning {
		body, _ := io.ReadAll(io.LimitReader(answer.Body, maxError)) // an incomplete one has a code, or the status counts
		code := errorCode(body)
		m := meaning(code)
		m.Code = code
		date, err := http.ParseTime(answer.Header.Get("Date"))
		if skew := date.Sub(now()).Abs(); err == nil && skew > maxSkew && answer.StatusCode/100 == 4 {
			return cloud.Meaning{Code: code, Status: http.StatusBadRequest, Hint: clockHint}
		}
		return m
	}
}

// read returns the body of an answer, which has a limit.
func read(answer *http.Response, most int64) ([]byte, error) {
	defer func() { _ = answer.Body.Close() }() // what was read is complete, or an error says that it is not
	data, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	if err == nil && int64(len(data)) > most {
		err = sdk.Precondition(answer.Request.URL.Hostname()+" answers with more data than such an answer can have",
			"check that this is the right endpoint")
	}
	return data, err
}

// errorCode returns the code of an error in XML (S3) or JSON (other services), and "" if there is none of this form. Nothing
// else of the body is for a message.
func errorCode(body []byte) string {
	found := regexp.MustCompile(`(?:<Code>|"__type"\s*:\s*"(?:[\w.]{1,100}#)?)([A-Z][A-Za-z]{1,63})["<:]`).FindSubmatch(body)
	if found == nil {
		return ""
	}
	return string(found[1])
}

// meaning returns the status and the hint of a code. The services with JSON answer 400 to almost everything.
func meaning(code string) cloud.Meaning {
	switch code {
	case "RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture":
		return cloud.Meaning{Status: http.StatusBadRequest, Hint: clockHint}
	case "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired":
		return cloud.Meaning{
			Status: http.StatusUnauthorized, Hint: "the session of the credentials has expired: give new ones, or use the role of the instance",
		}
	case "InvalidAccessKeyId", "InvalidClientTokenId", "UnrecognizedClientException", "InvalidToken", "SignatureDoesNotMatch",
		"InvalidSignatureException":
		return cloud.Meaning{Status: http.StatusForbidden, Hint: "check the credentials and the clock of this machine"}
	case "AccessDenied", "AccessDeniedException", "AllAccessDisabled":
		return cloud.Meaning{
			Status: http.StatusForbidden, Hint: "check the location, and that its owner grants the actions that the README of the plugin lists",
		}
	case "NoSuchKey", "NoSuchBucket", "NoSuchVersion", "ParameterNotFound", "ParameterVersionNotFound", "ResourceNotFoundException",
		"NotFoundException":
		return cloud.Meaning{Status: http.StatusNotFound, Hint: "check the location, the region, and that the object is there"}
	case "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		return cloud.Meaning{Hint: "set spec.providerConfig.region to the region of the bucket"}
	case "InvalidCiphertextException", "IncorrectKeyException":
		return cloud.Meaning{Hint: "check that the passphraseURI is unchanged, and that encryptionContext is as at the encryption"}
	case "DisabledException", "KMSInvalidStateException":
		return cloud.Meaning{Hint: "enable the key, or encrypt the stream with another one"}
	case "SlowDown", "TooManyRequestsException", "RequestLimitExceeded", "ProvisionedThroughputExceededException",
		"BandwidthLimitExceeded":
		return cloud.Meaning{Status: http.StatusTooManyRequests}
	case "ServiceUnavailable", "InternalError", "InternalFailure", "InternalServerError", "InternalServiceError", "KMSInternalException",
		"DependencyTimeoutException", "KeyUnavailableException", "RequestTimeout", "OperationAborted", "ConditionalRequestConflict",
		"PreconditionFailed":
		return cloud.Meaning{Status: http.StatusServiceUnavailable}
	}
	if strings.Contains(code, "Throttl") {
		return cloud.Meaning{Status: http.StatusTooManyRequests}
	}
	return cloud.Meaning{}
}
