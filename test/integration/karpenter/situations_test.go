//go:build unix

package karpenter

import (
	"fmt"
	"time"
)

// A situation is a NodePool with its workloads. Until all is in place its budgets allow nothing.
type situation struct {
	name     string
	policy   string   // WhenEmptyOrUnderutilized if empty
	after    string   // consolidateAfter; 15s if empty
	budgets  string   // as JSON; all nodes at once if empty
	types    []string // instance types; fourCPUs if empty
	capacity string   // capacity type; on-demand if empty
	spec     string   // more of the NodePool's spec.template.spec, as JSON
	replicas int      // makes a static pool, where above 0
	// open are more changes of the NodePool's spec when the budgets are opened, as a JSON merge patch, drifted those that mark its nodes before.
	open, drifted string
	workloads     []workload
	nodes         []node
}

// A workload is a Deployment of one pod, and what comes with it.
type workload struct {
	name, cpu string
	late      bool   // comes when those that are not late run
	gone      bool   // goes before the budgets are opened: it only makes a node
	bare      bool   // a pod without a controller
	keep      string // its pod's annotation karpenter.sh/do-not-disrupt
	pdb       bool   // with a PodDisruptionBudget that allows no disruption
	apart     bool   // by required anti-affinity on no node with a pod of the situation that has it too
	keepNode  bool   // its node is annotated karpenter.sh/do-not-disrupt
	delete    bool   // its node's NodeClaim is deleted before the budgets are opened
}

// A node is that of a workload, and what comes of it.
type node struct {
	of     string   // a workload, also one that is gone; empty for the only node of a pool without
	codes  []string // the plugin has to give, before Karpenter has looked at the node
	later  []string // and after it has
	pool   []string // the plugin has to give of its NodePool
	goes   bool
	unripe bool   // its NodeClaim never becomes Consolidatable
	says   string // what Karpenter's events on the node, its NodeClaim or its NodePool say, as a regular expression; empty: no matter
}

const (
	fourCPUs = "c-4x-amd64-linux"
	// spare is a node that is larger than its pod needs: where nothing held it, a small one would take its place.
	spareSmall, spareLarge = "c-2x-amd64-linux", "c-8x-amd64-linux"
)

// Pods of these sizes: of three CPUs one fits on a node of four, of five on one of eight only, and beside each a small one.
const three, five, small = "3", "5", "800m"

// one is a small pod on a node that is far too large.
func one(name string) []workload {
	return []workload{{name: "filler", cpu: five, gone: true}, {name: name, cpu: small, late: true}}
}

// two are two nodes with a small pod each, which would fit on one.
func two(first, second workload) []workload {
	first.cpu, first.late, second.cpu, second.late = small, true, small, true
	return []workload{{name: "filler-a", cpu: three, gone: true}, {name: "filler-b", cpu: three, gone: true}, first, second}
}

// empty is a node whose pod has gone.
func empty() []workload { return []workload{{name: "filler", cpu: three, gone: true}} }

var spare = []string{spareSmall, spareLarge}

// situations at a moment, on which the window of one depends.
func situations(now time.Time) []situation {
	opened := now.UTC().Add(-time.Hour)
	window := fmt.Sprintf(`[{"nodes":"100%%"},{"nodes":"0","schedule":"%d %d * * *","duration":"3h"}]`, opened.Minute(), opened.Hour())
	blocked := "No allowed disruptions for disruption reason Empty"
	kept := workload{name: "kept", keep: "true"}
	keptNode := node{of: "kept", codes: []string{"pod-do-not-disrupt"}, says: "do-not-disrupt"}
	return []situation{
		{name: "empty", workloads: empty(), nodes: []node{{of: "filler", codes: []string{"probably-removable"}, goes: true}}},
		{name: "moves", workloads: two(workload{name: "mover"}, kept),
			nodes: []node{{of: "mover", codes: []string{"probably-removable"}, goes: true}, keptNode}},
		{name: "bare", workloads: two(workload{name: "alone", bare: true}, kept),
			nodes: []node{{of: "alone", codes: []string{"probably-removable", "bare-pod-lost"}, goes: true}, keptNode}},
		{name: "cheaper", types: spare, workloads: one("app"), nodes: []node{{of: "app", codes: []string{"shrink-blocker-unknown"}, goes: true}}},
		{name: "drift", drifted: `{"template":{"metadata":{"labels":{"revision":"2"}}}}`, workloads: []workload{{name: "app", cpu: three}},
			nodes: []node{{of: "app", codes: []string{"drift-queued"}, goes: true}}},
		{name: "drift-held", drifted: `{"template":{"metadata":{"labels":{"revision":"2"}}}}`, workloads: []workload{{name: "app", cpu: three}},
			budgets: `[{"nodes":"100%"},{"nodes":"0","reasons":["Drifted"]}]`, nodes: []node{{of: "app", codes: []string{"drift-queued", "budget-zero-always"}, says: "disruption reason Drifted"}}},
		{name: "expiry", spec: `{"expireAfter":"180s"}`, budgets: `[{"nodes":"0"}]`, workloads: []workload{{name: "app", cpu: three}},
			nodes: []node{{of: "app", codes: []string{"expiry-ignores-budget"}, goes: true}}},
		{name: "window", budgets: window, workloads: empty(),
			nodes: []node{{of: "filler", codes: []string{"budget-zero-now"}, pool: []string{"budget-zero-now"}, says: blocked}}},
		{name: "misconfigured", budgets: `[{"nodes":"100%"},{"nodes":"50%","reasons":["Drifted"],"schedule":"0 25 * * *","duration":"1h"}]`, workloads: empty(),
			nodes: []node{{of: "filler", codes: []string{"budget-invalid"}, pool: []string{"budget-invalid"}, says: blocked}}},
		{name: "used-up", budgets: `[{"nodes":"1"}]`,
			workloads: []workload{{name: "stuck", cpu: three, pdb: true, delete: true}, {name: "filler", cpu: three, gone: true}},
			nodes: []node{{of: "stuck", codes: []string{"already-disrupting"}, unripe: true},
				{of: "filler", codes: []string{"budget-used-up"}, pool: []string{"budget-used-up"}}}},
		{name: "node-kept", types: spare, workloads: []workload{{name: "filler", cpu: five, gone: true}, {name: "app", cpu: small, late: true, keepNode: true}},
			nodes: []node{{of: "app", codes: []string{"node-do-not-disrupt"}, says: "do-not-disrupt"}}},
		{name: "pdb", types: spare, workloads: []workload{{name: "filler", cpu: five, gone: true}, {name: "app", cpu: small, late: true, pdb: true}},
			nodes: []node{{of: "app", codes: []string{"pdb-blocks"}, says: "(?i)pdb"}}},
		{name: "when-empty", policy: "WhenEmpty", types: spare, workloads: one("app"),
			nodes: []node{{of: "app", codes: []string{"policy-when-empty"}, unripe: true, says: "consolidation policy WhenEmpty, but node is not empty"}}},
		// The mover's node is a fifth of the cost, and holds half of the pods.
		{name: "balanced", policy: "Balanced", types: spare,
			workloads: []workload{{name: "filler", cpu: "7", gone: true}, {name: "mover", cpu: "1500m"}, {name: "kept", cpu: small, late: true, keep: "true"}},
			nodes:     []node{{of: "mover", codes: []string{"balanced-score-below"}}, keptNode}},
		{name: "never", after: "Never", workloads: empty(),
			nodes: []node{{of: "filler", codes: []string{"consolidation-never"}, pool: []string{"consolidation-never"}, unripe: true, says: "consolidation disabled"}}},
		{name: "running", after: "1h", workloads: empty(), nodes: []node{{of: "filler", codes: []string{"consolidate-after-running"}, unripe: true}}},
		{name: "startup-taint", spec: `{"startupTaints":[{"key":"integration.invalid/agent","effect":"NoSchedule"}]}`, workloads: empty(),
			nodes: []node{{of: "", codes: []string{"nodeclaim-not-initialized"}, unripe: true}}},
		{name: "static", replicas: 1, nodes: []node{{of: "", codes: []string{"static-nodepool"}, pool: []string{"static-nodepool"}, unripe: true}}},
		{name: "limit", types: spare, open: `{"limits":{"cpu":"1"}}`, workloads: one("app"),
			nodes: []node{{of: "app", codes: []string{"nodepool-limit-reached"}, later: []string{"pods-fit-nowhere"}, pool: []string{"nodepool-limit-reached"}, says: "(?i)not all pods"}}},
		{name: "fits-nowhere", workloads: []workload{{name: "a", cpu: three}, {name: "b", cpu: three}},
			nodes: []node{{of: "a", codes: []string{"shrink-blocker-unknown"}, later: []string{"no-cheaper-replacement"}, says: "(?i)can't replace with a cheaper node"},
				{of: "b", codes: []string{"shrink-blocker-unknown"}, later: []string{"no-cheaper-replacement"}, says: "(?i)can't replace with a cheaper node"}}},
		{name: "apart", workloads: []workload{{name: "a", cpu: small, apart: true}, {name: "b", cpu: small, apart: true}}, types: []string{spareSmall},
			nodes: []node{{of: "a", codes: []string{"anti-affinity-floor"}}, {of: "b", codes: []string{"anti-affinity-floor"}}}},
		{name: "spot", capacity: "spot", types: spare, workloads: one("app"), nodes: []node{{of: "app", codes: []string{"shrink-blocker-unknown"}, later: []string{"spot-to-spot-barred"}, says: "SpotToSpotConsolidation is disabled"}}},
	}
}
