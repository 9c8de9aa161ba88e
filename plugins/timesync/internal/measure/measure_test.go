package measure_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/timesync/internal/measure"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
)

// server answers each request with a reply of this leap indicator, stratum, reference and offset. Source: RFC 5905, 7.3.
type server struct {
	leap, stratum byte
	reference     string
	offset        time.Duration
	silent        bool
	delay         time.Duration // before each reply
	first         int           // the number of requests that arrive before the first reply
}

func (s server) listen(t testing.TB) (port string) {
	t.Helper()
	_, port, err := net.SplitHostPort(s.listenAt(t, "127.0.0.1:0"))
	require.NoError(t, err)
	return port
}

func (s server) listenAt(t testing.TB, address string) string {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // the test has ended
	go func() {
		first, held := s.first, []func(){}
		for {
			request := make([]byte, 1024)
			n, from, err := conn.ReadFrom(request)
			if err != nil {
				return
			}
			if n < 48 || s.silent {
				continue
			}
			held = append(held, func() { _, _ = conn.WriteTo(s.reply(request), from) }) // a lost reply ends the request with a timeout
			if len(held) >= first {
				for _, answer := range held {
					time.AfterFunc(s.delay, answer)
				}
				held, first = nil, 0
			}
		}
	}()
	return conn.LocalAddr().String()
}

func (s server) reply(request []byte) []byte {
	const unixToNTP = 2208988800
	now := time.Now().Add(s.offset)
	stamp := uint64(now.Unix()+unixToNTP)<<32 | uint64(now.Nanosecond())<<32/1e9
	reply := make([]byte, 48)
	reply[0], reply[1], reply[2], reply[3] = s.leap<<6|4<<3|4, s.stratum, 6, 0xE9
	copy(reply[12:16], s.reference)
	binary.BigEndian.PutUint64(reply[16:], stamp-1<<32)
	copy(reply[24:32], request[40:48])
	binary.BigEndian.PutUint64(reply[32:], stamp)
	binary.BigEndian.PutUint64(reply[40:], stamp)
	return reply
}

func source(address string) settings.Source { return settings.Source{Address: address} }

func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server server
		want   string
		usable bool
	}{
		"good":             {server{stratum: 2}, "127.0.0.1: stratum 2, offset ", true},
		"far off":          {server{stratum: 2, offset: time.Hour}, "offset 59m59.", true},
		"not synchronized": {server{leap: 3, stratum: 16}, "it is not synchronized itself (stratum 16)", false},
		"denied":           {server{reference: "DENY"}, "it denies this machine its service (kiss code DENY)", false},
		"rate":             {server{reference: "RATE"}, "it limits its clients (kiss code RATE)", false},
		"silent":           {server{silent: true}, "no answer within 3s; check the address and whether UDP port 123 is open", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := measure.Client{Port: c.server.listen(t)}.Ask(t.Context(), []settings.Source{source("127.0.0.1")})
			require.Len(t, answers, 1)
			assert.Equal(t, c.usable, answers[0].Usable(), answers[0].String())
			if name == "far off" { // rounding leaves 1h0m0s or a little less
				assert.InDelta(t, time.Hour, answers[0].Offset, float64(time.Second))
				return
			}
			assert.Contains(t, answers[0].String(), c.want)
		})
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(conn.LocalAddr().String())
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	answers := measure.Client{Port: port}.Ask(t.Context(), []settings.Source{source("127.0.0.1"), source("no-such-name.invalid")})
	assert.Contains(t, answers[0].String(), "127.0.0.1: nothing listens on UDP port 123 there")
	assert.Contains(t, answers[1].String(), "no-such-name.invalid: the name ")
	assert.True(t, measure.NoneUsable(answers))
}

// TestKey: a server without the key answers without a MAC, or not at all. The key is not in the error.
func TestKey(t *testing.T) {
	t.Parallel()
	s := source("127.0.0.1")
	s.Key = &settings.Key{ID: 1, Type: "SHA1", Value: v1alpha1.NewSecret([]byte("c4n4ry-key"))}
	answers := measure.Client{Port: server{stratum: 2}.listen(t)}.Ask(t.Context(), []settings.Source{s})
	assert.Contains(t, answers[0].String(), "it does not accept the key")
	assert.NotContains(t, answers[0].String(), "c4n4ry")
	answers = measure.Client{Port: server{silent: true}.listen(t)}.Ask(t.Context(), []settings.Source{s})
	assert.Contains(t, answers[0].String(), "no answer within 3s; compare id, type and value of the key with the server's")
	assert.NotContains(t, answers[0].String(), "c4n4ry")
}

// TestAtOnce: every server has its request before the first one answers.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	const number = 8
	client := measure.Client{Port: server{stratum: 2, first: number}.listen(t)}
	for _, a := range client.Ask(t.Context(), slices.Repeat([]settings.Source{source("127.0.0.1")}, number)) {
		assert.True(t, a.Usable(), a.String())
	}
}

// TestCanceled: the end of the context ends all requests.
func TestCanceled(t *testing.T) {
	t.Parallel()
	client := measure.Client{Port: server{silent: true}.listen(t)}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	for _, a := range client.Ask(ctx, slices.Repeat([]settings.Source{source("127.0.0.1")}, 3)) {
		assert.ErrorIs(t, a.Err, context.Canceled)
	}
}

// BenchmarkAsk asks 8 servers whose answers take 5 to 40 ms, and compares it with asking the slowest one alone.
func BenchmarkAsk(b *testing.B) {
	const number = 8
	var client measure.Client
	var sources []settings.Source
	for i := range number {
		s := server{stratum: 2, delay: time.Duration(i+1) * 5 * time.Millisecond}
		host := fmt.Sprintf("127.0.0.%d", i+1)
		address := s.listenAt(b, net.JoinHostPort(host, cmp.Or(client.Port, "0")))
		_, client.Port, _ = net.SplitHostPort(address)
		sources = append(sources, source(host))
	}
	var slowest, all time.Duration
	ask := func(sources []settings.Source) time.Duration {
		began := time.Now()
		require.False(b, measure.NoneUsable(client.Ask(b.Context(), sources)))
		return time.Since(began)
	}
	for b.Loop() {
		slowest += ask(sources[number-1:])
		all += ask(sources)
	}
	b.ReportMetric(float64(all)/float64(slowest), "x-slowest")
}

func TestMajority(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) measure.Answer { return measure.Answer{Offset: d} }
	assert.True(t, measure.Confirm([]measure.Answer{at(time.Millisecond)}, time.Second))
	assert.False(t, measure.Confirm([]measure.Answer{at(0), at(time.Hour)}, time.Second), "one of two is no majority")
	assert.True(t, measure.Confirm([]measure.Answer{at(0), at(time.Hour), at(time.Millisecond)}, time.Second))
	assert.False(t, measure.Confirm(nil, time.Second))
	assert.False(t, measure.Confirm([]measure.Answer{{Err: context.Canceled}}, time.Second))
	assert.True(t, measure.Confirm([]measure.Answer{{Err: context.Canceled, Source: settings.Source{NTS: true}}}, time.Second))
	low, high, found := measure.Disagreement([]measure.Answer{at(time.Hour), at(0)}, time.Second)
	assert.True(t, found)
	assert.Equal(t, time.Hour, high.Offset-low.Offset)
	_, _, found = measure.Disagreement([]measure.Answer{at(time.Millisecond), at(0)}, time.Second)
	assert.False(t, found)
}
