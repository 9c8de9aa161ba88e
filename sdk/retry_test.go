package sdk_test

import (
	"context"
	"errors"
	"io"
	"log"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// quiet discards what a server logs about the handshakes that a test makes fail.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// tries returns the Fetch of a source that fails this number of times, and the time of each try since the first.
func tries(failures int, failure error) (func(context.Context, sdk.Location) (sdk.Object, error), *[]time.Duration) {
	var at []time.Duration
	begin := time.Now()
	return func(context.Context, sdk.Location) (sdk.Object, error) {
		if at = append(at, time.Since(begin)); len(at) <= failures {
			return sdk.Object{}, failure
		}
		return sdk.Object{Body: io.NopCloser(strings.NewReader("a"))}, nil
	}, &at
}

// TestRetry: the pauses double from 100 ms to 5 s, each shorter by up to a tenth, for as long as the host permits. None is longer than
// the time since the first try, and the first of 5 s is any part of it.
func TestRetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fetch, at := tries(1000, sdk.Retry(0, "not yet"))
		begin := time.Now()
		_, err := fetchFrom(t, sourceOf(sdk.Source{Fetch: fetch}), fetching(1, 30*time.Second))
		requireCode(t, err, pluginv1.CodeRetry, "not yet")
		assert.Less(t, time.Since(begin), 30*time.Second)
		pause, last, apart := 100*time.Millisecond, time.Duration(0), false
		for _, got := range (*at)[1:] {
			longest := min(pause, max(last, 100*time.Millisecond))
			assert.LessOrEqual(t, got-last, longest)
			if longest < 5*time.Second || apart {
				assert.GreaterOrEqual(t, got-last, longest*9/10)
			} else {
				apart = true
			}
			pause, last = min(2*pause, 5*time.Second), got
		}
		assert.True(t, apart)
		assert.Greater(t, len(*at), 9)
	})
}

func TestNoRetry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err      error
		retryFor time.Duration
	}{
		"one try":        {sdk.Retry(0, "no"), 0},
		"not Retry":      {sdk.Precondition("no", ""), time.Hour},
		"a defect":       {errors.New("no"), time.Hour},
		"after too long": {sdk.Retry(time.Minute, "no"), 30 * time.Second},
	} {
		fetch, at := tries(1000, c.err)
		_, err := fetchFrom(t, sourceOf(sdk.Source{Fetch: fetch}), fetching(1, c.retryFor))
		require.Error(t, err, name)
		assert.Len(t, *at, 1, name)
	}
}

// TestRetryAfter: no try comes before the time that the source named, and not all machines come at that time.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const after = 10 * time.Second
		seen := map[time.Duration]bool{}
		for range 10 {
			fetch, at := tries(2, sdk.Retry(after, "busy"))
			_, err := fetchFrom(t, sourceOf(sdk.Source{Fetch: fetch}), fetching(1, 30*time.Second))
			require.NoError(t, err)
			require.Len(t, *at, 3)
			for i, got := range (*at)[1:] {
				pause := got - (*at)[i]
				assert.GreaterOrEqual(t, pause, after)
				assert.LessOrEqual(t, pause, after+after/5)
				seen[pause] = true
			}
		}
		assert.Greater(t, len(seen), 15)
		fetch, at := tries(1, sdk.Retry(time.Hour, "busy"))
		_, err := fetchFrom(t, sourceOf(sdk.Source{Fetch: fetch}), fetching(1, 30*time.Second))
		assert.Equal(t, time.Hour, failure(t, err, pluginv1.CodeRetry, "busy").RetryAfter)
		assert.Len(t, *at, 1)
	})
}

// TestFetchBeginsAgain: what came before a lost connection counts neither as content nor for the limit.
func TestFetchBeginsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		whole := strings.Repeat("whole", 100_000)
		broken := func(n int) io.Reader {
			return io.MultiReader(strings.NewReader(whole[:n]), iotest.ErrReader(io.ErrUnexpectedEOF))
		}
		s := sourceOf(sdk.Source{Fetch: fetchOf(broken(len(whole)), broken(1), broken(200_000), strings.NewReader(whole))})
		got, err := fetchFrom(t, s, fetching(int64(len(whole)), 30*time.Second))
		require.NoError(t, err)
		assert.Equal(t, 4, got.begins)
		assert.Equal(t, "v4", got.revision)
		assert.Equal(t, whole, string(got.data))
	})
}

// TestCancelledRetry: a pause ends with the call.
func TestCancelledRetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begin := time.Now()
		away := sdk.Retry(time.Hour, "away")
		fetch, _ := tries(1, away)
		err := sourceOf(sdk.Source{Fetch: fetch}).Fetch(ctx, fetching(1, 24*time.Hour), func(pluginv1.Chunk) error { return nil })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		r := asking(keySpec)
		r.RetryFor = 24 * time.Hour
		_, err = keysOf(sdk.KeyProvider{
			Passphrase: func(context.Context, sdk.Key) (v1alpha1.Secret, error) { return v1alpha1.Secret{}, away },
		}).Passphrase(ctx, r)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 3*time.Second, time.Since(begin))
	})
}

// TestClientsAfterAnOutage: of thousands of machines that begin at once while the source is away, no second after its return gets more
// than a quarter of the requests.
func TestClientsAfterAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const clients, away = 4000, 20 * time.Second
		begin, got := time.Now(), make(chan time.Duration, clients)
		for range clients {
			go func() {
				_, err := fetchFrom(t, sourceOf(sdk.Source{Fetch: func(context.Context, sdk.Location) (sdk.Object, error) {
					if time.Since(begin) < away {
						return sdk.Object{}, sdk.Retry(0, "away")
					}
					got <- time.Since(begin) - away
					return sdk.Object{Body: io.NopCloser(strings.NewReader("a"))}, nil
				}}), fetching(1, 30*time.Second))
				assert.NoError(t, err)
			}()
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, got, clients)
		close(got)
		seconds := map[time.Duration]int{}
		for at := range got {
			seconds[at.Truncate(time.Second)]++
		}
		for second, n := range seconds {
			assert.LessOrEqual(t, n, clients/4, "%s after the return", second)
		}
		t.Logf("requests by second after the return: %v", seconds)
	})
}
