package diagnose

import (
	"fmt"
	"maps"
	"slices"

	"github.com/noderes/kubectl-noderes/pkg/cadvisor"
	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

const (
	cadvisorFile   = "metrics-cadvisor.txt"
	cadvisorSource = "kubelet:/metrics/cadvisor"
)

// readCadvisor reads the kubelet's counters of cgroups.
func (n *nodeCase) readCadvisor() (map[string]*cadvisor.Group, error) {
	data, err := n.files.File(cadvisorFile)
	if err != nil {
		return nil, err
	}
	groups, err := cadvisor.Read(string(data))
	if len(groups) > 0 {
		err = nil // what is broken in it is of others
	}
	return groups, err
}

// meteredGroup is a container's cgroup, and its pod's, as the kubelet's counters
// have them; nil where they do not.
type meteredGroup struct {
	container
	own, pod *cadvisor.Group
}

// metered are the running containers whose counters the kubelet told. They
// stand in for cgroups that were not read.
func (c *podCase) metered() []meteredGroup {
	if c.groupsErr == nil || c.ended() || c.uid == "" {
		return nil
	}
	groups, err := c.cadvisor()
	if err != nil {
		// Of what nobody wanted the cgroups' own gap is enough.
		if reason := snapshot.Reason(err); reason != snapshot.ReasonNotCollected && reason != snapshot.ReasonRefused {
			c.gaps.Miss("nodes/"+c.name+"/"+cadvisorFile, err, "whether containers were throttled since they began", "get nodes/proxy (kubelet /metrics/cadvisor)")
		}
		return nil
	}
	var pod *cadvisor.Group
	byID := map[string]*cadvisor.Group{}
	for _, path := range slices.Sorted(maps.Keys(groups)) {
		switch at := cgroup.ParsePath(path); {
		case at.PodUID != c.uid || at.Nested != "":
		case at.Level == cgroup.Pod:
			pod = groups[path]
		case at.Level == cgroup.Container:
			byID[at.ContainerID] = groups[path]
		}
	}
	var out []meteredGroup
	for _, k := range c.containers() {
		if !k.running() {
			continue
		}
		if own := byID[cgroup.ContainerID(k.status.ContainerID)]; own != nil {
			out = append(out, meteredGroup{k, own, pod})
		}
	}
	return out
}

// throttledByCounters says of containers whose cgroups were not read what the
// kubelet's counters tell: one reading of the time since the container began, so
// nothing of now.
func (c *podCase) throttledByCounters() []report.Finding {
	var out []report.Finding
	c.eachMetered(func(m meteredGroup, t cgroup.Throttle) {
		if t.Ratio >= throttledShare {
			out = append(out, c.meteredFinding(m, t))
		}
	})
	return out
}

// quietByCounters says so of those that were hardly ever throttled.
func (c *podCase) quietByCounters() []report.Finding {
	var out []report.Finding
	c.eachMetered(func(m meteredGroup, t cgroup.Throttle) {
		if t.Ratio < throttledShare && quietAbove(m) {
			out = append(out, report.NewFinding(report.CPUNotThrottled, report.Likely, c.subject(m.Name),
				fmt.Sprintf("Container %s is not throttled: %d of %s throttled since it began, limit %s.", m.Name, t.Throttled, plural(t.Periods, "period"), cores(float64(m.own.Quota)/float64(m.own.Period))),
				meteredEvidence(m.own)...))
		}
	})
	return out
}

// eachMetered are the containers with a quota whose counters are enough to tell.
func (c *podCase) eachMetered(do func(meteredGroup, cgroup.Throttle)) {
	for _, m := range c.metered() {
		if m.own.Quota == 0 || m.own.Period == 0 || !m.own.Counters.HasBandwidth || c.ownsCPUs(c.uid, m.Name) {
			continue
		}
		t, err := cgroup.Lifetime(m.own.Counters, m.own.Quota, m.own.Period)
		if err != nil || t.Periods < cgroup.LeastPeriods {
			continue
		}
		c.gaps.Lack("nodes/"+c.name+"/samples", "the kubelet's counters are one reading", "whether containers are throttled now", "the node pod, which reads twice")
		do(m, t)
	}
}

// quietAbove: the pod's own quota does not throttle either, or it has none.
func quietAbove(m meteredGroup) bool {
	if m.pod == nil {
		return false
	}
	if m.pod.Quota == 0 {
		return true
	}
	t, err := cgroup.Lifetime(m.pod.Counters, m.pod.Quota, m.pod.Period)
	return err == nil && m.pod.Counters.HasBandwidth && t.Ratio < throttledShare
}

func (c *podCase) meteredFinding(m meteredGroup, t cgroup.Throttle) report.Finding {
	g := m.own
	quota, period := float64(g.Quota), float64(g.Period)
	code, why := report.CPUQuotaThrottled, fmt.Sprintf("use reaches the limit (%s of the quota of those periods)", percent(t.UsedOfQuota))
	switch {
	case t.HasUsage && t.UsedOfQuota >= reachesQuota:
	case t.Ratio >= reachesQuota:
		why = "nearly every period is cut short"
	default:
		code = report.CPUQuotaBurstThrottled
		why = fmt.Sprintf("not every period is cut short: at times its threads spend the quota of %s before the period of %s ends", usec(quota), usec(period))
	}
	f := report.NewFinding(code, report.Likely, c.subject(m.Name),
		fmt.Sprintf("Container %s was throttled in %d of %s (%s) since it began, by its own limit of %s (%d µs in each %d µs); %s.",
			m.Name, t.Throttled, plural(t.Periods, "period"), percent(t.Ratio), cores(quota/period), g.Quota, g.Period, why),
		meteredEvidence(g)...)
	f.Arithmetic = fmt.Sprintf("%d / %d = %s", t.Throttled, t.Periods, percent(t.Ratio))
	if t.HasUsage {
		f.Arithmetic += fmt.Sprintf("; %d µs used / (%d × %d µs) = %s of the quota", t.UsageUsec, t.Periods, g.Quota, percent(t.UsedOfQuota))
	}
	f.Remedies = []report.Remedy{{
		Summary: fmt.Sprintf("Raise limits.cpu of container %s above %s, or drop the limit and keep the request; then measure again.", m.Name, cores(quota/period)),
		Effect:  "How far is not computed from a total of its whole life: two readings of its cgroup tell.",
		Caution: "A limit unequal to the request makes a Guaranteed pod Burstable.",
	}}
	return f
}

// meteredEvidence quotes the kubelet's counters of a cgroup.
func meteredEvidence(g *cadvisor.Group) []report.Evidence {
	var out []report.Evidence
	for _, series := range [][2]string{
		{cadvisor.Quota, "quota in µs, of each period"},
		{cadvisor.Period, "period in µs"},
		{cadvisor.ThrottledPeriods, "periods cut short since the container began"},
		{cadvisor.Periods, "periods with something to run since then"},
		{cadvisor.ThrottledSeconds, "seconds throttled, summed over CPUs; not the wait of one thread"},
		{cadvisor.UsageSeconds, "seconds of CPU used"},
	} {
		if text := g.Text[series[0]]; text != "" {
			out = append(out, report.Evidence{Source: cadvisorSource, Field: series[0], Value: text, Means: series[1]})
		}
	}
	return out
}
