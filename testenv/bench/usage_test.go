package bench

import (
	"strings"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0},
		{[]float64{3}, 3},
		{[]float64{9, 1}, 5},
		{[]float64{9, 1, 2}, 2},
		{[]float64{100, 1, 2, 3}, 2.5},
	} {
		before := append([]float64(nil), tt.values...)
		if got := Median(tt.values); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.values, got, tt.want)
		}
		for i := range before {
			if before[i] != tt.values[i] {
				t.Errorf("the caller's values were sorted: %v", tt.values)
			}
		}
	}
}

func TestSamples(t *testing.T) {
	t.Parallel()
	s := Samples{
		{CPU: 30 * time.Millisecond, Wall: 9 * time.Second, MaxRSS: 1024},
		{CPU: 10 * time.Millisecond, Wall: 1 * time.Second, MaxRSS: 3072},
		{CPU: 20 * time.Millisecond, Wall: 2 * time.Second, MaxRSS: 2048},
	}
	if s.CPU() != 20 || s.Wall() != 2000 || s.MaxRSS() != 3 {
		t.Errorf("CPU %v, wall %v, RSS %v", s.CPU(), s.Wall(), s.MaxRSS())
	}
}

func TestParseUsage(t *testing.T) {
	t.Parallel()
	u, err := ParseUsage([]byte(`{"cpu":1500000,"wall":2000000,"maxRSS":12345,"exit":0}` + "\n"))
	if err != nil || u.CPU != 1500*time.Microsecond || u.Wall != 2*time.Millisecond || u.MaxRSS != 12345 {
		t.Errorf("%+v %v", u, err)
	}
	for data, says := range map[string]string{
		"":                              "no usage",
		"words":                         "no usage",
		`{}`:                            "nothing was measured",
		`{"cpu":0,"wall":2,"maxRSS":1}`: "nothing was measured",
		`{"cpu":1,"wall":2,"maxRSS":1,"exit":3,"output":"no disk"}`: "exit status 3: no disk",
	} {
		if _, err := ParseUsage([]byte(data)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", data, err, says)
		}
	}
}

func TestPeakRSS(t *testing.T) {
	t.Parallel()
	if kib, err := PeakRSS("Name:\tx\nVmPeak:\t  99 kB\nVmHWM:\t   13520 kB\nVmRSS:\t 1 kB\n"); err != nil || kib != 13520 {
		t.Errorf("%d %v", kib, err)
	}
	for _, status := range []string{"", "VmRSS:\t 1 kB\n", "VmHWM:\tx kB\n"} {
		if kib, err := PeakRSS(status); err == nil {
			t.Errorf("%q: %d", status, kib)
		}
	}
}
