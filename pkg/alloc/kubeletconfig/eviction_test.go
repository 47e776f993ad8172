package kubeletconfig

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestEvictionThresholds(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"defaults", `{}`, []string{
			"evictionHard[imagefs.available] imagefs.available 15% of 1000: 150", "evictionHard[imagefs.inodesFree] imagefs.inodesFree 5% of 1000: 50",
			"evictionHard[memory.available] memory.available 100Mi of 1000: 104857600", "evictionHard[memory.available] allocatableMemory.available 100Mi of 1000: 104857600",
			"evictionHard[nodefs.available] nodefs.available 10% of 1000: 100", "evictionHard[nodefs.inodesFree] nodefs.inodesFree 5% of 1000: 50"}},
		// Setting any key drops the other defaults; kind switches the disk off and has none for memory.
		{"kind", `{"evictionHard":{"imagefs.available":"0%","nodefs.available":"0%","nodefs.inodesFree":"0%"}}`, nil},
		{"soft", `{"evictionHard":{},"evictionSoft":{"memory.available":"1Gi"},"evictionSoftGracePeriod":{"memory.available":"1m30s"},"evictionMinimumReclaim":{"memory.available":"256Mi"}}`,
			[]string{"evictionSoft[memory.available] memory.available 1Gi of 1000: 1073741824 soft 1m30s until 1342177280"}},
		{"percentage of memory", `{"evictionHard":{"memory.available":"10%"}}`, []string{
			"evictionHard[memory.available] memory.available 10% of 1000: 100", "evictionHard[memory.available] allocatableMemory.available 10% of 1000: 100"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := Decode([]byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			thresholds, err := c.EvictionThresholds()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, x := range thresholds {
				s := fmt.Sprintf("%s %s %s of 1000: %d", x.Field, x.Signal, x.Text, x.Of(1000))
				if x.Soft {
					s += fmt.Sprintf(" soft %s until %d", x.Grace, x.Until(1000))
				}
				got = append(got, s)
			}
			if strings.Join(got, "\n") != strings.Join(tc.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

// The recorded event says "Threshold quantity: 600Mi".
func TestEvictionThresholdQuantity(t *testing.T) {
	thresholds, err := recorded(t, "numa4").EvictionThresholds()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range thresholds {
		if x.Signal == "memory.available" && x.Quantity(6077656<<10) != "600Mi" {
			t.Errorf("%s", x.Quantity(6077656<<10))
		}
	}
}

func TestEvictionThresholdsWrong(t *testing.T) {
	c, err := Decode([]byte(`{"evictionHard":{"memory.free":"1Gi","nodefs.available":"10%"},"evictionSoft":{"memory.available":"1Gi","pid.available":"-5"},"evictionSoftGracePeriod":{"memory.available":"soon"}}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.EvictionThresholds()
	if len(got) != 2 || err == nil {
		t.Fatalf("%v, %v", got, err)
	}
	for _, want := range []string{"memory.free", "pid.available", `not a duration: "soon"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %s", err, want)
		}
	}
}

func TestRestartBackOff(t *testing.T) {
	const reduced, maximum = `"ReduceDefaultCrashLoopBackOffDecay":true`, `"KubeletCrashLoopBackOffMax":true`
	for _, tc := range []struct {
		text    string
		minor   int
		initial time.Duration
		max     time.Duration
		why     string
	}{
		{`{}`, 34, 10 * time.Second, 5 * time.Minute, ""},
		{`{}`, 37, 10 * time.Second, 5 * time.Minute, "not set (gate KubeletCrashLoopBackOffMax)"},
		{`{"crashLoopBackOff":{"maxContainerRestartPeriod":"40s"}}`, 34, 10 * time.Second, 5 * time.Minute, ""},
		{`{"crashLoopBackOff":{"maxContainerRestartPeriod":"40s"}}`, 35, 10 * time.Second, 40 * time.Second, "maxContainerRestartPeriod 40s (gate"},
		{`{"crashLoopBackOff":{"maxContainerRestartPeriod":"4s"}}`, 37, 4 * time.Second, 4 * time.Second, "4s"},
		{`{"crashLoopBackOff":{"maxContainerRestartPeriod":"40s"},"featureGates":{"KubeletCrashLoopBackOffMax":false}}`, 37, 10 * time.Second, 5 * time.Minute, ""},
		{`{"featureGates":{` + reduced + `}}`, 34, time.Second, time.Minute, "gate ReduceDefaultCrashLoopBackOffDecay"},
		{`{"featureGates":{` + reduced + `}}`, 37, time.Second, 5 * time.Minute, "gate ReduceDefaultCrashLoopBackOffDecay, crashLoopBackOff"},
		{`{"featureGates":{` + reduced + `,` + maximum + `},"crashLoopBackOff":{"maxContainerRestartPeriod":"20s"}}`, 34, time.Second, 20 * time.Second, "20s"},
		{`{"crashLoopBackOff":{"maxContainerRestartPeriod":"2562047h"}}`, 37, 10 * time.Second, 5 * time.Minute, ""},
	} {
		c, err := Decode([]byte(tc.text))
		if err != nil {
			t.Fatal(err)
		}
		b := c.RestartBackOff(tc.minor)
		if b.Initial != tc.initial || b.Max != tc.max || !strings.Contains(b.Why, tc.why) || tc.why == "" && tc.minor == 34 && b.Why != "" {
			t.Errorf("%s in 1.%d: %+v", tc.text, tc.minor, b)
		}
	}
}

func TestRestartBackOffDelay(t *testing.T) {
	b := RestartBackOff{Initial: 10 * time.Second, Max: 5 * time.Minute}
	var got []string
	for restart := range 9 {
		got = append(got, b.Delay(restart+1).String())
	}
	if s := strings.Join(got, " "); s != "0s 10s 20s 40s 1m20s 2m40s 5m0s 5m0s 5m0s" {
		t.Error(s)
	}
	if d := b.Delay(1 << 31); d != b.Max {
		t.Error(d)
	}
	if !b.Has(160*time.Second) || !b.Has(5*time.Minute) || b.Has(60*time.Second) || b.Has(0) {
		t.Error("the sequence is wrong")
	}
	if one := (RestartBackOff{Initial: time.Second, Max: time.Second}); !one.Has(time.Second) || one.Delay(5) != time.Second {
		t.Error("initial and maximum the same")
	}
}
