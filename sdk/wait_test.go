package sdk_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

func probing(answers ...func() (string, error)) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		answer := answers[0]
		answers = answers[min(1, len(answers)-1):]
		return answer()
	}
}

func answer(status string, err error) func() (string, error) {
	return func() (string, error) { return status, err }
}

func TestWaitUntilTheProbeSucceeds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, p := time.Now(), &recorder{}
		not := errors.New("not yet")
		require.NoError(t, sdk.Wait(t.Context(), p, sdk.WaitSpec{What: "it", Probe: probing(
			answer("1 source", not), answer("", not), answer("1 source", not), answer("2 sources", not), answer("3 sources", nil),
		)}))
		assert.Equal(t, 4*time.Second, time.Since(began))
		assert.Equal(t, []string{"1 source", "2 sources", "3 sources"}, p.lines, "a status is reported when it changes")
	})
}

// TestWaitInVain: the error has the last error and status, a hint, and is never a Retry.
func TestWaitInVain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		probe func(context.Context) (string, error)
		want  string
		hint  string
		final bool
	}{
		"plain":           {probing(answer("", errors.New("no answer"))), "it: not within 2m0s: no answer", "allow more time", false},
		"with a status":   {probing(answer("", errors.New("a")), answer("2 sources", errors.New("no answer"))), "it: not within 2m0s: no answer (2 sources)", "allow more time", false},
		"with a hint":     {probing(answer("", sdk.Precondition("it is off", "turn it on"))), "it: not within 2m0s: it is off", "turn it on", false},
		"a Retry":         {probing(answer("", sdk.Retry(time.Hour, "later"))), "it: not within 2m0s: later", "allow more time", false},
		"of a service":    {probing(answer("", &machine.ServiceError{Unit: "d", Action: "query", Hint: "see d", Err: errors.New("x")})), "x (see d)", "see d", false},
		"a time limit":    {probing(answer("", context.DeadlineExceeded)), "it: not within 2m0s: context deadline exceeded", "allow more time", false},
		"final":           {probing(answer("", sdk.Final(errors.New("wrong key")))), "it: wrong key", "run again", true},
		"a final Retry":   {probing(answer("", sdk.Final(sdk.Retry(0, "wrong key")))), "it: wrong key", "run again", true},
		"final, contract": {probing(answer("", sdk.Final(sdk.Precondition("wrong key", "correct it")))), "wrong key", "correct it", true},
		"no end": {func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}, "it: not within 2m0s: the first check did not end", "allow more time", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				err := sdk.Wait(t.Context(), &recorder{}, sdk.WaitSpec{What: "it", Timeout: 2 * time.Minute, Probe: c.probe})
				wantCode(t, err, pluginv1.CodePrecondition, c.want)
				known, _ := errors.AsType[*pluginv1.Error](err)
				assert.Contains(t, known.Hint, c.hint)
				assert.Equal(t, c.final, known.Final)
				assert.Equal(t, c.final, time.Since(began) == 0)
			})
		})
	}
}

// TestWaitEndsWithItsContext: with the context's cause, whatever the probe returns.
func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for name, probe := range map[string]func(context.Context) (string, error){
		"between two probes": probing(answer("", sdk.Precondition("not yet", "wait"))),
		"during a probe": func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", sdk.Final(sdk.Precondition("not yet", "wait"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancelCause(t.Context())
				time.AfterFunc(1500*time.Millisecond, func() { stop(sdk.ErrStopped) })
				require.ErrorIs(t, sdk.Wait(ctx, &recorder{}, sdk.WaitSpec{What: "it", Probe: probe}), sdk.ErrStopped)
				ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
				defer cancel()
				require.ErrorIs(t, sdk.Wait(ctx, &recorder{}, sdk.WaitSpec{What: "it", Probe: probe}), context.DeadlineExceeded)
			})
		})
	}
}
