// Command presign prints a URL with the signature of AWS (SigV4) for S3 in its query, made by AWS's own library:
//
//	presign METHOD URL REGION SECONDS
//
// The keys are in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "presign:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 4 {
		return errors.New("usage: presign METHOD URL REGION SECONDS")
	}
	request, err := http.NewRequest(arguments[0], arguments[1], nil)
	if err != nil {
		return err
	}
	query := request.URL.Query()
	query.Set("X-Amz-Expires", arguments[3])
	request.URL.RawQuery = query.Encode()
	keys := aws.Credentials{AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY")}
	signed, _, err := v4.NewSigner().PresignHTTP(context.Background(), keys, request, "UNSIGNED-PAYLOAD", "s3", arguments[2], time.Now(),
		func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }) // as S3 has it
	if err != nil {
		return err
	}
	_, err = fmt.Println(signed)
	return err
}
