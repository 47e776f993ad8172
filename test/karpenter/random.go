package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/disruption/scenario"
)

// random makes scenarios that lean towards what the code treats specially: window edges, odd values and schedules, and states and
// pods that block.
type random struct{ *rand.Rand }

func newRandom(seed int64) random { return random{rand.New(rand.NewSource(seed))} }

func of[T any](r random, values ...T) T { return values[r.Intn(len(values))] }

func (r random) chance(p float64) bool { return r.Float64() < p }

func (r random) scenario() *scenario.Scenario {
	now := r.moment()
	s := &scenario.Scenario{Now: now.Format(time.RFC3339Nano), EvalNodes: []int{0, 1, 7, 11, 100}}
	s.Options.NoDefaults = r.chance(0.1)
	names := []string{"default", "batch", "spot-only"}[:of(r, 1, 1, 2, 3)]
	for _, name := range names {
		s.NodePools = append(s.NodePools, r.pool(name, now))
	}
	if r.chance(0.95) {
		s.InstanceTypes = r.instanceTypes()
	}
	if r.chance(0.25) {
		return s
	}
	for i := range 1 + r.Intn(10) {
		n := r.node(fmt.Sprintf("n%02d", i), names)
		s.Nodes = append(s.Nodes, n)
		for j := range of(r, 0, 0, 0, 1, 2, 5) {
			s.Pods = append(s.Pods, r.pod(fmt.Sprintf("p%02d-%d", i, j), n.Name))
		}
	}
	for i := range of(r, 0, 0, 1, 2, 3) {
		s.PDBs = append(s.PDBs, r.pdb(fmt.Sprintf("pdb%d", i)))
	}
	return s
}

func (r random) moment() time.Time {
	t := time.Date(2026, time.Month(1+r.Intn(12)), 1+r.Intn(28), r.Intn(24), r.Intn(60), r.Intn(60), 0, time.UTC)
	switch r.Intn(8) {
	case 0: // with an offset, on days when clocks change somewhere
		zone := time.FixedZone("", of(r, -5, 1, 2, 9)*3600+of(r, 0, 0, 1800))
		t = time.Date(2026, of(r, time.March, time.October, time.November), of(r, 1, 8, 25, 29), r.Intn(4), r.Intn(60), 0, 0, zone)
	case 1: // leap days, also where none comes for eight years, and ends of years
		t = of(r, time.Date(2028, 2, 29, r.Intn(24), 0, 0, 0, time.UTC), time.Date(2097, 3, 1, 0, 0, 0, 0, time.UTC),
			time.Date(2026, 12, 31, 23, 59, 59, 999999999, time.UTC), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))
	case 2, 3:
		t = t.Truncate(of(r, time.Minute, 15*time.Minute, time.Hour))
	case 4:
		t = t.Add(time.Duration(r.Intn(1_000_000_000)))
	case 5:
		t = t.Truncate(time.Hour).Add(of(r, -1, 1, -time.Millisecond))
	}
	return t
}

func (r random) pool(name string, now time.Time) json.RawMessage {
	disruption := map[string]any{}
	if !r.chance(0.05) {
		disruption["consolidateAfter"] = of(r, "0s", "0s", "30s", "5m", "1h", "1h30m", "24h", "Never")
	}
	if !r.chance(0.2) {
		disruption["consolidationPolicy"] = of(r, "WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced", "Balanced")
	}
	if !r.chance(0.15) {
		budgets := []any{}
		for range of(r, 0, 1, 1, 2, 2, 3, 5) {
			budgets = append(budgets, r.budget(now))
		}
		disruption["budgets"] = budgets
	}
	requirements := []any{}
	for range of(r, 0, 0, 0, 1, 2) {
		requirements = append(requirements, r.requirement())
	}
	spec := map[string]any{"template": map[string]any{"spec": map[string]any{
		"requirements": requirements,
		"nodeClassRef": map[string]any{"group": "karpenter.test.sh", "kind": "TestNodeClass", "name": "default"},
	}}}
	if !r.chance(0.05) {
		spec["disruption"] = disruption
	}
	if r.chance(0.1) {
		spec["replicas"] = r.Intn(10)
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": map[string]any{"name": name}, "spec": spec,
	})
	if err != nil {
		panic(err)
	}
	return raw
}

func (r random) requirement() map[string]any {
	return of(r,
		map[string]any{"key": "topology.kubernetes.io/zone", "operator": "In", "values": []string{"zone-a", of(r, "zone-b", "zone-z")}},
		map[string]any{"key": "failure-domain.beta.kubernetes.io/zone", "operator": "NotIn", "values": []string{of(r, "zone-a", "zone-z")}},
		map[string]any{"key": "karpenter.sh/capacity-type", "operator": "In", "values": []string{of(r, "spot", "on-demand")}},
		map[string]any{"key": "kubernetes.io/arch", "operator": "In", "values": []string{of(r, "amd64", "arm64")}},
		map[string]any{"key": "team", "operator": of(r, "Exists", "DoesNotExist")},
		map[string]any{"key": "size", "operator": of(r, "Gt", "Lt"), "values": []string{of(r, "3", "8")}},
	)
}

func (r random) budget(now time.Time) map[string]any {
	b := map[string]any{}
	switch r.Intn(12) {
	case 0:
		b["nodes"] = of(r, "101%", "5.5%", "abc", "", "-1", " 1", "0x5", "+3", "1e2", "007", "100%%", "%", "-5%", "99999999999", "4294967295", "4294967296", "2147483648", "99999999999999999999")
	case 1:
	case 2, 3:
		b["nodes"] = "0"
	case 4:
		b["nodes"] = of(r, "0%", "00%", "100%", "1%", "99%")
	case 5, 6, 7:
		b["nodes"] = fmt.Sprintf("%d%%", r.Intn(101))
	default:
		b["nodes"] = fmt.Sprint(r.Intn(12))
	}
	switch r.Intn(6) {
	case 0, 1:
		reasons := []string{}
		for _, reason := range []string{"Underutilized", "Empty", "Drifted"} {
			if r.chance(0.5) {
				reasons = append(reasons, reason)
			}
		}
		b["reasons"] = reasons
	case 2:
		b["reasons"] = of(r, []string{"Unhealthy"}, []string{"empty"}, []string{"Empty", "Empty"}, []string{"Drifted"})
	}
	switch r.Intn(10) {
	case 0, 1, 2, 3, 4:
		b["schedule"], b["duration"] = r.schedule(now), r.duration()
	case 5:
		b[of(r, "schedule", "duration")] = "1h"
		if b["duration"] == nil {
			b["schedule"] = r.schedule(now)
		}
	}
	return b
}

// schedule tends to fire near now, so that windows are often open or about to change.
func (r random) schedule(now time.Time) string {
	u := now.UTC()
	hour := (u.Hour() + 24 - r.Intn(6)) % 24
	switch r.Intn(18) {
	case 0:
		return of(r, "@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually")
	case 1:
		return of(r, "@every 1h", "@every 90s", "@reboot", "@daily ", "@Daily", "@dailyx", "@weekly foo", "@")
	case 2:
		return of(r, "0 0 30 2 *", "0 0 31 4 *", "0 0 31 FEB *", "0 0 29 2 *", "0 0 30 2 MON")
	case 3:
		return of(r, "0 0 * * 7", "0 0 L * *", "0 9 * * 1#1", "60 0 * * *", "0 24 * * *", "0 0 0 * *", "0 0 * 13 *", "a b c d e", "0 0 1W * *",
			"0  9 * * 1-5 ", "\t0 9 * * *", "0 9 * * mon-fri", "0 9 ? * MON-FRI", "0 9 1 ? MON", "0 9 * * FRI-MON", "*/0 * * * *", "5-1 * * * *", "*-5 * * * *", "1,,2 * * * *", "")
	case 4:
		return of(r, "0 0 9 * * *", "TZ=UTC 0 9 * * *", "CRON_TZ=Asia/Seoul 0 9 * * *", "TZ=Asia/Seoul 0 10 * * *", "0 9 * * * 2026")
	case 5:
		return fmt.Sprintf("%d %d %d * %d", r.Intn(60), hour, u.Day(), r.Intn(7))
	case 6:
		return fmt.Sprintf("%d %d */%d * %d", r.Intn(60), hour, 1+r.Intn(5), r.Intn(7))
	case 7, 8, 9:
		return fmt.Sprintf("%d %d * * %s", r.Intn(60), hour, of(r, "*", "1-5", "MON-FRI", "0,6", "sat,SUN", "*"))
	case 10, 11:
		return fmt.Sprintf("%d %d * * *", u.Minute(), hour)
	case 12:
		return fmt.Sprintf("%d * * * *", u.Minute())
	case 13:
		return "* * * * *"
	default:
		fields := []string{r.field(0, 59), r.field(0, 23), r.field(1, 31), r.field(1, 12), r.field(0, 6)}
		return strings.Join(fields, " ")
	}
}

func (r random) field(low, high int) string {
	a, b := low+r.Intn(high-low+1), low+r.Intn(high-low+1)
	if a > b && !r.chance(0.05) {
		a, b = b, a
	}
	return of(r, "*", "*", "*", fmt.Sprint(a), fmt.Sprintf("%d-%d", a, b), fmt.Sprintf("%d-%d/%d", a, b, 1+r.Intn(4)),
		fmt.Sprintf("%d,%d", a, b), fmt.Sprintf("%d/%d", a, 1+r.Intn(5)), fmt.Sprintf("*/%d", 1+r.Intn((high-low)/2+1)))
}

func (r random) duration() string {
	switch r.Intn(10) {
	case 0:
		return of(r, "30s", "1h30s", "0s", "1d", "-1h", "1.5h", "90", "1h0m0s", "10m0s", "1500ms", "2562047h")
	case 1:
		return of(r, "0m", "1m", "0h")
	case 2:
		return of(r, "24h", "168h", "720h", "8760h")
	case 3, 4, 5:
		return fmt.Sprintf("%dm", 1+r.Intn(180))
	default:
		return fmt.Sprintf("%dh", 1+r.Intn(12))
	}
}

func (r random) instanceTypes() []scenario.InstanceType {
	var out []scenario.InstanceType
	for i, name := range []string{"m.large", "m.xlarge", "m.2xlarge"} {
		price := 0.1 * float64(int(1)<<i)
		prices := map[string]float64{"zone-a/on-demand": price, "zone-b/on-demand": price * 1.05}
		for _, key := range []string{"zone-a/spot", "zone-b/spot", "zone-a/reserved"} {
			if r.chance(0.7) {
				prices[key] = price * of(r, 0, 0.3, 0.4)
			}
		}
		out = append(out, scenario.InstanceType{Name: name, CPU: "4", Memory: "16Gi", Pods: "110", Prices: prices})
	}
	return out
}

func (r random) node(name string, pools []string) scenario.Node {
	n := scenario.Node{
		Name: name, NodePool: of(r, pools...), InstanceType: of(r, "m.large", "m.xlarge", "m.2xlarge"), Zone: of(r, "zone-a", "zone-b"),
		CapacityType: of(r, "on-demand", "on-demand", "spot", "reserved"), AgeSeconds: int64(r.Intn(of(r, 200, 8000, 2000000))),
		ExpireAfter: of(r, "", "720h", "Never", "24h", "1s"), Drifted: r.chance(0.15), Consolidatable: of(r, "", "", "true", "true", "false"),
	}
	if r.chance(0.7) {
		ago := int64(r.Intn(of(r, 40, 400, 8000, 200000)))
		n.LastPodEventAgo = &ago
	}
	if r.chance(0.3) {
		n.TGPSeconds = 3600
	}
	if r.chance(0.2) {
		n.Labels = map[string]string{of(r, "team", "size"): of(r, "3", "5", "x")}
	}
	for range of(r, 0, 1, 1, 2) {
		r.upset(&n)
	}
	return n
}

// upset takes one thing from a healthy node.
func (r random) upset(n *scenario.Node) {
	switch r.Intn(15) {
	case 0:
		n.Unmanaged = true
	case 1:
		n.NoNode, n.Uninitialized, n.Unregistered = true, true, true
	case 2:
		n.Uninitialized = true
	case 3:
		n.Unregistered, n.Uninitialized = true, true
	case 4:
		n.Ready = of(r, "False", "Unknown", "Absent")
	case 5:
		n.NodeClaimDeleting = true
	case 6:
		n.MarkedForDeletion = true
	case 7:
		n.InstanceTerminating = true
	case 8:
		n.Nominated = true
	case 9:
		n.DoNotDisrupt = of(r, "true", "false", "1h", "True")
	case 10:
		n.InstanceType = of(r, "unknown.large", "")
	case 11:
		n.Zone = ""
	case 12:
		n.CapacityType = ""
	case 13:
		n.NodePool = of(r, "gone", "")
	case 14:
		n.InQueue = true
	}
	if n.Unmanaged && n.NoNode {
		n.Unmanaged = false // nothing would be left
	}
}

func (r random) pod(name, node string) scenario.Pod {
	p := scenario.Pod{
		Name: name, Node: node, Namespace: of(r, "", "", "shop"), Labels: map[string]string{"app": of(r, "a", "b", "c")},
		Owner: of(r, "ReplicaSet", "ReplicaSet", "", "DaemonSet", "StatefulSet", "Node", "Job", "none"),
		Phase: of(r, "", "", "", "", "", "", "Running", "Succeeded", "Failed", "Pending"),

		Terminating: r.chance(0.06), ReadyFalse: r.chance(0.15), TolerateDisruption: r.chance(0.06),
	}
	if r.chance(0.2) {
		p.DeletionCost = of(r, "100", "-2147483647", "2147483647", "-134217728", "-134217729", "1.5", "1e3", "x", "0", "Inf")
	}
	if r.chance(0.2) {
		priority := of(r, int32(0), 2000001000, -1, -33554432, 1000000, -100000000)
		p.Priority = &priority
	}
	if r.chance(0.12) {
		p.DoNotDisrupt = of(r, "true", "true", "false", "5m", "10h", "0s", "-5m", "True", "bad", "1h1h", "1d")
	}
	if r.chance(0.8) {
		ago := int64(r.Intn(of(r, 600, 4000, 40000)))
		p.StartedAgo = &ago
	}
	return p
}

func (r random) pdb(name string) scenario.PDB {
	p := scenario.PDB{
		Name: name, Namespace: of(r, "", "shop"), Selector: map[string]string{"app": of(r, "a", "b")},
		DisruptionsAllowed: of(r, int32(0), 0, 1, 3), AlwaysAllow: r.chance(0.3),
	}
	if r.chance(0.1) {
		p.Selector = map[string]string{}
	}
	if r.chance(0.5) {
		p.MaxUnavailable = of(r, "0", "0%", "1", "25%")
	} else {
		p.MinAvailable = of(r, "1", "100%", "50%", "0")
	}
	return p
}
