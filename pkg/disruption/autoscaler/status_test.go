package autoscaler

import (
	"errors"
	"strings"
	"testing"
	"time"
)

const statusOf130 = `
time: 2026-07-14 08:59:50.123456789 +0000 UTC
autoscalerStatus: Running
clusterWide:
  health:
    status: Healthy
    nodeCounts:
      registered: {total: 5, ready: 4, notStarted: 0, unready: {total: 1, resourceUnready: 0}}
      longUnregistered: 0
      unregistered: 0
    lastProbeTime: "2026-07-14T08:59:50.1Z"
    lastTransitionTime: "2026-07-14T07:00:00Z"
  scaleUp: {status: NoActivity, lastProbeTime: "2026-07-14T08:59:50Z", lastTransitionTime: "2026-07-14T07:30:00Z"}
  scaleDown: {status: CandidatesPresent, candidates: 1}
  surprise: [1, 2]
nodeGroups:
- name: zulu
  health:
    status: Healthy
    nodeCounts: {registered: {total: 2, ready: 2}}
    cloudProviderTarget: 2
    minSize: 2
    maxSize: 8
  scaleUp: {status: Backoff, backoffInfo: {errorCode: QUOTA, errorMessage: no more}}
- name: alpha
  health: {status: Healthy, cloudProviderTarget: 3, minSize: 1, maxSize: 4}
  scaleDown: {status: CandidatesPresent, candidates: 1, lastTransitionTime: "2026-07-14T08:55:00Z"}
`

func TestParseStatus(t *testing.T) {
	for name, text := range map[string]string{"text": statusOf130,
		"ConfigMap": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cluster-autoscaler-status}\ndata:\n  status: |\n" + indent(statusOf130)} {
		s, err := ParseStatus([]byte(text))
		if err != nil || len(s.Groups) != 2 {
			t.Fatalf("%s: %+v, %v", name, s, err)
		}
		alpha, zulu := s.Groups[0], s.Groups[1]
		if s.Running != "Running" || s.Health.Total != 5 || s.Health.Unready != 1 || s.ScaleDown.Candidates != 1 || !s.Time.Equal(time.Date(2026, 7, 14, 8, 59, 50, 123456789, time.UTC)) {
			t.Errorf("%s: cluster %+v", name, s)
		}
		if alpha.Name != "alpha" || alpha.Room() != 2 || alpha.Max != 4 || !alpha.ScaleDown.Since.Equal(time.Date(2026, 7, 14, 8, 55, 0, 0, time.UTC)) {
			t.Errorf("%s: alpha %+v", name, alpha)
		}
		if zulu.Room() != 0 || zulu.Backoff != "QUOTA no more" || zulu.Health.Ready != 2 {
			t.Errorf("%s: zulu %+v", name, zulu)
		}
	}
}

func indent(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }

func TestParseStatusRefuses(t *testing.T) {
	for text, want := range map[string]error{
		"Cluster-autoscaler status at 2023-01-01 00:00:00 +0000 UTC:\nCluster-wide:\n": ErrPlainText,
		"kind: ConfigMap\ndata: {status: Initializing}\n":                              ErrPlainText,
		"":                 ErrNotStatus,
		"a: 1":             ErrNotStatus,
		"[1, 2":            ErrNotStatus,
		"nodeGroups: text": ErrNotStatus,
		"nodeGroups: [{health: {minSize: 99999999999999999999999}}]": ErrNotStatus,
	} {
		if _, err := ParseStatus([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
	if _, err := ParseStatus([]byte("nodeGroups: [" + strings.Repeat("{name: x},", maxGroups+1) + "]")); !errors.Is(err, ErrNotStatus) {
		t.Errorf("more groups than can be: %v", err)
	}
	if _, err := ParseStatus(make([]byte, maxStatus+1)); err == nil {
		t.Error("a text larger than any ConfigMap is read")
	}
}

// Sizes at the edges of their type do not wrap.
func TestRoom(t *testing.T) {
	for _, c := range []struct {
		g    Group
		want int64
	}{{Group{Target: 5, Min: 3}, 2}, {Group{Target: 1, Min: 3}, 0}, {Group{Target: -1 << 63, Min: 1<<63 - 1}, 0}, {Group{Target: 1<<63 - 1, Min: -1 << 63}, 1<<63 - 1},
		{Group{Health: Health{Total: 4}, Min: 3}, 1}} {
		if got := c.g.Room(); got != c.want {
			t.Errorf("%+v has room for %d, want %d", c.g, got, c.want)
		}
	}
}

func FuzzParseStatus(f *testing.F) {
	f.Add([]byte(statusOf130))
	f.Add([]byte("kind: ConfigMap\ndata: {status: 'autoscalerStatus: Running'}"))
	f.Add([]byte("a: &a [1,2]\nb: &b [*a,*a,*a]\nnodeGroups: [{name: *b}]"))
	f.Add([]byte("autoscalerStatus: Running\nnodeGroups:\n- name: x\n  health: {minSize: -9223372036854775808, cloudProviderTarget: 9223372036854775807}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseStatus(text)
		if err != nil {
			if len(err.Error()) > 400 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		for _, g := range s.Groups {
			if g.Room() < 0 {
				t.Errorf("%+v has room for %d", g, g.Room())
			}
		}
	})
}
