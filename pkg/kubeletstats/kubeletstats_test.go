package kubeletstats

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

const podPath = "/kubepods.slice/kubepods-pod2f792ede_09a3_4cdf_9c2b_6e5bdeb7b023.slice"

// line is one of a container's series; at is in seconds.
func line(name, container, id, value string, at int64) string {
	label := ""
	if container == "sandbox" {
		container, label = "", "abc"
	}
	return fmt.Sprintf("%s{container=%q,id=%q,image=\"\",name=%q,namespace=\"shop\",pod=\"web\"} %s %d\n", name, container, id, label, value, at*1000)
}

func TestRead(t *testing.T) {
	text := line("container_cpu_usage_seconds_total", "app", podPath+"/old.scope", "90", 5) +
		line("container_cpu_usage_seconds_total", "app", podPath+"/new.scope", "12.5", 10) +
		line("container_cpu_cfs_periods_total", "app", podPath+"/new.scope", "100", 10) +
		line("container_spec_cpu_quota", "app", podPath+"/new.scope", "5000", 0) +
		line("container_spec_memory_limit_bytes", "", podPath, "6.7108864e+07", 0) +
		line("container_cpu_usage_seconds_total", "", podPath, "20", 9) +
		line("container_cpu_usage_seconds_total", "sandbox", podPath+"/box.scope", "7", 12) +
		line("container_memory_rss", "side", podPath+"/side.scope", "-1", 9) +
		line("container_memory_usage_bytes", "side", podPath+"/side.scope", "+Inf", 9) +
		`container_cpu_usage_seconds_total{container="",cpu="total",id="/",name="",namespace="",pod=""} 8571.916 1796022450806` + "\n" +
		`container_cpu_usage_seconds_total{container="",cpu="total",id="/kubepods.slice",name="",namespace="",pod=""} 1 1796022450806` + "\n" +
		`container_cpu_usage_seconds_total{container="",cpu="cpu01",id="/x",name="",namespace="shop",pod="other"} 1` + "\n" +
		"container_memory_rss{broken\n"
	got, err := Read(text)
	if err == nil || len(got) != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	app := got[Cgroup{"shop", "web", "app"}]
	if app.CPU != 12.5 || app.ID != podPath+"/new.scope" || app.Periods != 100 || app.Quota != 5000 || app.At.Unix() != 10 || Known(app.Throttled) {
		t.Errorf("app %+v", app)
	}
	if pod := got[Cgroup{"shop", "web", ""}]; pod.CPU != 20 || pod.Limit != 67108864 || Known(pod.Quota) {
		t.Errorf("pod %+v", pod)
	}
	if side := got[Cgroup{"shop", "web", "side"}]; Known(side.Anon) || Known(side.Memory) {
		t.Errorf("side %+v", side)
	}
	if root := got[Cgroup{}]; root.CPU != 8571.916 {
		t.Errorf("root %+v", root)
	}
	if !app.IsOf("2f792ede-09a3-4cdf-9c2b-6e5bdeb7b023") || app.IsOf("2f792ede-09a3-4cdf-9c2b-000000000000") || app.IsOf("") {
		t.Error("whose it is")
	}
	if !(Counters{ID: "/kubepods/pod2f792ede-09a3/abc"}).IsOf("2f792ede-09a3") {
		t.Error("whose it is, without systemd")
	}
	if names := Series(); !slices.Contains(names, "container_oom_events_total") || slices.Contains(names, "container_last_seen") {
		t.Error("series")
	}
}

// Rates are of two readings of one cgroup that cAdvisor read at two times.
func TestAfter(t *testing.T) {
	web := Cgroup{"shop", "web", "app"}
	at := func(id string, second int64, cpu, periods float64) map[Cgroup]Counters {
		c := unknown()
		c.ID, c.At, c.CPU, c.Periods = id, time.Unix(second, 0), cpu, periods
		return map[Cgroup]Counters{web: c}
	}
	cpu := func(r Reading) string {
		rate, ok := r[web].Rate(func(c Counters) float64 { return c.CPU })
		return fmt.Sprintf("%.3f %t", rate, ok)
	}
	r := Reading(nil).After(at("a", 10, 5, math.NaN()))
	if got := cpu(r); got != "0.000 false" {
		t.Errorf("of one reading: %s", got)
	}
	r = r.After(at("a", 20, 7, 30))
	if got := cpu(r); got != "0.200 true" {
		t.Errorf("of two: %s", got)
	}
	if _, ok := r[web].Growth(func(c Counters) float64 { return c.Periods }); ok {
		t.Error("growth of what was not known before")
	}
	same := r.After(at("a", 20, 7, 30))
	if got := cpu(same); got != "0.200 true" {
		t.Errorf("cAdvisor has read nothing new: %s", got)
	}
	if got := cpu(same.After(at("a", 30, 12, 30))); got != "0.500 true" {
		t.Errorf("then it has: %s", got)
	}
	if got := cpu(r.After(at("a", 30, 6, 30))); got != "0.000 false" {
		t.Errorf("set back: %s", got)
	}
	if got := cpu(r.After(at("b", 30, 12, 30))); got != "0.000 false" {
		t.Errorf("another container: %s", got)
	}
	if got := cpu(r.After(at("a", 15, 12, 30))); got != "0.000 false" {
		t.Errorf("an earlier time: %s", got)
	}
	if got := len(r.After(nil)); got != 0 {
		t.Errorf("%d cgroups that are gone are kept", got)
	}
}

func TestReadRecent(t *testing.T) {
	got, err := ReadRecent([]byte(`{"node":{"cpu":{"usageNanoCores":2152773851,"psi":{"some":{"avg10":94.06}}},"memory":{"psi":{"some":{"avg10":-1}}},"io":{}},
		"pods":[{"podRef":{"name":"web","namespace":"shop"},"cpu":{"usageNanoCores":1},"containers":[{"name":"app","cpu":{"psi":{}}}]}]}`))
	if err != nil || len(got) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	if n := got[Cgroup{}]; *n.NanoCores != 2152773851 || *n.CPU != 94.06 || n.Memory != nil || n.IO != nil {
		t.Errorf("node %+v", n)
	}
	if p := got[Cgroup{"shop", "web", ""}]; *p.NanoCores != 1 || p.CPU != nil {
		t.Errorf("pod %+v", p)
	}
	if c := got[Cgroup{"shop", "web", "app"}]; c.NanoCores != nil || c.CPU != nil {
		t.Errorf("container %+v", c)
	}
	if _, err := ReadRecent([]byte(`[]`)); err == nil || !strings.Contains(err.Error(), "stats/summary") {
		t.Error(err)
	}
}

func TestWhole(t *testing.T) {
	for _, v := range []float64{math.NaN(), -1, math.Inf(1), 1e19} {
		if n, ok := Whole(v); ok {
			t.Errorf("%v is %d", v, n)
		}
	}
	if n, ok := Whole(6.7108864e+07); !ok || n != 67108864 {
		t.Error(n)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(line("container_cpu_usage_seconds_total", "app", podPath, "1", 1))
	f.Fuzz(func(t *testing.T, text string) {
		told, _ := Read(text)
		r := Reading(nil).After(told).After(told)
		for _, p := range r {
			if _, ok := p.Rate(func(c Counters) float64 { return c.CPU }); ok {
				t.Error("a rate of one reading")
			}
		}
	})
}
