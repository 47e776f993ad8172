//go:build unix

// Package karpenter holds what the plugin says of nodes against what a real Karpenter then does with them.
package karpenter

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// limit is for the whole test.
	limit = 9 * time.Minute
	// acts is within how long Karpenter takes away what it does: it looks each 10 s, acts 15 s after it has decided, and takes one
	// node after the other where their pods have to be moved.
	acts = 3 * time.Minute
	// stays is how long a node at least is watched that Karpenter leaves.
	stays = 75 * time.Second
	// nominated is for how long at most an event says that a pod was planned onto a node: Karpenter keeps it in mind for 20 s, and the
	// plugin, which sees the event only, has to add as much to that.
	nominated = 41 * time.Second
)

// removes are the codes of nodes that go; those of drift and expiry also speak of nodes that stay for now, so the situations know.
var removes = []string{"probably-removable"}

// keeps are the codes that each alone says that Karpenter leaves the node for now.
var keeps = []string{
	"already-disrupting", "static-nodepool", "consolidation-never", "policy-when-empty", "nodeclaim-not-initialized", "node-do-not-disrupt",
	"pod-do-not-disrupt", "pdb-blocks", "consolidate-after-running", "budget-zero-now", "budget-zero-always", "budget-used-up", "budget-invalid",
	"balanced-score-below", "no-cheaper-replacement", "spot-to-spot-barred", "pods-fit-nowhere", "anti-affinity-floor",
}

// A watched node is one of a situation, from the moment on at which the budgets are opened.
type watched struct {
	node
	situation, name, claim string
	verdict, after         []string      // the plugin's codes, when the budgets are opened and at the end
	text                   []string      // with their summaries
	gone                   time.Duration // after the opening; 0 if it stays
	said                   []string      // in Karpenter's events
}

// TestVerdicts: what the plugin says of a node, and whether Karpenter then removes it, agree.
func TestVerdicts(t *testing.T) {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	c := start(ctx, t)
	t.Logf("Karpenter ready after %.0f s", time.Since(begin).Seconds())
	all := situations(time.Now())
	nodes := c.prepare(ctx, t, all)
	t.Logf("%d nodes in %d situations ready after %.0f s", len(nodes), len(all), time.Since(begin).Seconds())

	// While Karpenter stands still the plugin sees what Karpenter is about to see.
	c.pause(ctx, t)
	for _, s := range all {
		c.open(ctx, t, s)
	}
	c.ask(ctx, t, all, nodes, func(w *watched) *[]string { return &w.verdict })
	c.resume(t)
	opened := time.Now()
	t.Logf("verdicts after %.0f s", time.Since(begin).Seconds())

	c.watch(ctx, t, nodes, opened)
	t.Logf("watched until %.0f s", time.Since(begin).Seconds())
	var left []*watched
	for _, w := range nodes {
		if w.gone == 0 {
			left = append(left, w)
		}
	}
	c.ask(ctx, t, nil, left, func(w *watched) *[]string { return &w.after })
	c.events(ctx, t, nodes)
	judge(t, nodes)
	if t.Failed() {
		if log, err := c.karpenter.Log(); err == nil {
			t.Logf("Karpenter's log:\n%s", log)
		}
	}
	t.Logf("all in %.0f s", time.Since(begin).Seconds())
}

// prepare brings every situation about, with budgets that allow nothing.
func (c *cluster) prepare(ctx context.Context, t *testing.T, all []situation) []*watched {
	t.Helper()
	for _, s := range all {
		c.create(ctx, t, nodePools, "", s.nodePool(t))
	}
	for _, late := range []bool{false, true} {
		for _, s := range all {
			for _, w := range s.workloads {
				if w.late == late {
					c.deploy(ctx, t, s, w)
				}
			}
		}
		c.until(ctx, t, "pods run", 2*time.Minute, func() bool {
			places := c.places(ctx, t)
			for _, s := range all {
				for _, w := range s.workloads {
					if w.late == late && places[s.name+"-"+w.name] == "" && s.name != "startup-taint" {
						return false
					}
				}
			}
			return true
		})
	}
	c.until(ctx, t, "nodes of pools whose pods never run", time.Minute, func() bool {
		claims := c.claims(ctx, t)
		for _, s := range all {
			if s.nodes[0].of == "" && !slices.ContainsFunc(slices.Collect(maps.Values(claims)), func(o unstructured.Unstructured) bool { return o.GetLabels()["karpenter.sh/nodepool"] == s.name }) {
				return false
			}
		}
		return true
	})
	scheduled := time.Now()
	places, claims := c.places(ctx, t), c.claims(ctx, t)
	var found []*watched
	for _, s := range all {
		for _, n := range s.nodes {
			w := &watched{node: n, situation: s.name}
			for name, claim := range claims {
				if n.of == "" && claim.GetLabels()["karpenter.sh/nodepool"] == s.name || n.of != "" && name == places[s.name+"-"+n.of] {
					w.name, w.claim = name, claim.GetName()
				}
			}
			if w.name == "" {
				t.Fatalf("%s: no node of %q", s.name, n.of)
			}
			found = append(found, w)
		}
		for _, w := range s.workloads {
			if w.keepNode {
				c.patch(ctx, t, nodes, places[s.name+"-"+w.name], `{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":"true"}}}`)
			}
			if claim, ok := claims[places[s.name+"-"+w.name]]; w.delete && ok {
				c.remove(ctx, t, nodeClaims, "", claim.GetName())
			}
			if w.gone {
				c.remove(ctx, t, deployments, namespace, s.name+"-"+w.name)
			}
		}
		if s.drifted != "" {
			c.patch(ctx, t, nodePools, s.name, `{"spec":`+s.drifted+`}`)
		}
	}
	c.until(ctx, t, "NodeClaims are ripe", 2*time.Minute, func() bool {
		claims := c.claims(ctx, t)
		for _, w := range found {
			claim := claims[w.name]
			if !w.unripe && !is(claim, "Consolidatable") {
				return false
			}
			if slices.Contains(w.codes, "drift-queued") && !is(claim, "Drifted") {
				return false
			}
		}
		return true
	})
	time.Sleep(time.Until(scheduled.Add(nominated)))
	return found
}

// nodePool is the situation's, with budgets that allow nothing.
func (s situation) nodePool(t *testing.T) string {
	t.Helper()
	or := func(value, instead string) string {
		if value == "" {
			return instead
		}
		return value
	}
	types := s.types
	if len(types) == 0 {
		types = []string{fourCPUs}
	}
	template := map[string]any{
		"nodeClassRef": map[string]any{"group": classes.Group, "kind": kinds[classes], "name": "default"},
		"expireAfter":  "Never",
		"requirements": []any{
			map[string]any{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": types},
			map[string]any{"key": "karpenter.sh/capacity-type", "operator": "In", "values": []string{or(s.capacity, "on-demand")}},
		},
	}
	if err := json.Unmarshal([]byte(or(s.spec, "{}")), &template); err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	spec := map[string]any{
		"disruption": map[string]any{"consolidationPolicy": or(s.policy, "WhenEmptyOrUnderutilized"), "consolidateAfter": or(s.after, "15s"),
			"budgets": []any{map[string]any{"nodes": "0"}}},
		"template": map[string]any{"spec": template},
	}
	if s.replicas > 0 {
		spec["replicas"] = s.replicas
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": s.name}, "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// open gives the situation's budgets.
func (s situation) opened() string {
	if s.budgets == "" {
		return `[{"nodes":"100%"}]`
	}
	return s.budgets
}

func (c *cluster) open(ctx context.Context, t *testing.T, s situation) {
	t.Helper()
	if s.open != "" {
		c.patch(ctx, t, nodePools, s.name, `{"spec":`+s.open+`}`)
	}
	c.patch(ctx, t, nodePools, s.name, `{"spec":{"disruption":{"budgets":`+s.opened()+`}}}`)
}

func (c *cluster) deploy(ctx context.Context, t *testing.T, s situation, w workload) {
	t.Helper()
	labels := map[string]any{"app": s.name + "-" + w.name}
	annotations := map[string]any{}
	if w.keep != "" {
		annotations["karpenter.sh/do-not-disrupt"] = w.keep
	}
	spec := map[string]any{
		"nodeSelector": map[string]any{"karpenter.sh/nodepool": s.name},
		"containers": []any{map[string]any{"name": "app", "image": "app.invalid/app:1",
			"resources": map[string]any{"requests": map[string]any{"cpu": w.cpu, "memory": "256Mi"}}}},
	}
	if w.apart {
		labels["apart"] = s.name
		spec["affinity"] = map[string]any{"podAntiAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": []any{
			map[string]any{"topologyKey": "kubernetes.io/hostname", "labelSelector": map[string]any{"matchLabels": map[string]any{"apart": s.name}}}}}}
	}
	template := map[string]any{"metadata": map[string]any{"labels": labels, "annotations": annotations}, "spec": spec}
	name := map[string]any{"name": s.name + "-" + w.name}
	of, object := deployments, map[string]any{"metadata": name, "spec": map[string]any{"selector": map[string]any{"matchLabels": labels}, "template": template}}
	if w.bare {
		of, object = pods, map[string]any{"metadata": map[string]any{"name": name["name"], "labels": labels}, "spec": spec}
	}
	encode := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if w.pdb {
		c.create(ctx, t, pdbs, namespace, encode(map[string]any{"metadata": name, "spec": map[string]any{"maxUnavailable": 0, "selector": map[string]any{"matchLabels": labels}}}))
	}
	c.create(ctx, t, of, namespace, encode(object))
}

// places are the nodes of running pods, by the label app.
func (c *cluster) places(ctx context.Context, t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, p := range c.list(ctx, t, pods) {
		phase, _, _ := unstructured.NestedString(p.Object, "status", "phase")
		if at, _, _ := unstructured.NestedString(p.Object, "spec", "nodeName"); phase == "Running" {
			out[p.GetLabels()["app"]] = at
		}
	}
	return out
}

// claims are the NodeClaims that have a node, by its name.
func (c *cluster) claims(ctx context.Context, t *testing.T) map[string]unstructured.Unstructured {
	t.Helper()
	out := map[string]unstructured.Unstructured{}
	for _, claim := range c.list(ctx, t, nodeClaims) {
		if name, _, _ := unstructured.NestedString(claim.Object, "status", "nodeName"); name != "" {
			out[name] = claim
		}
	}
	return out
}

// is: the object has the condition.
func is(o unstructured.Unstructured, condition string) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(v any) bool {
		m, _ := v.(map[string]any)
		return m["type"] == condition && m["status"] == "True"
	})
}

// ask has the plugin explain the nodes, and the pools if there are any, and puts down what it says.
func (c *cluster) ask(ctx context.Context, t *testing.T, pools []situation, nodes []*watched, put func(*watched) *[]string) {
	t.Helper()
	// No node pods: each would restart the clock of its node.
	args := []string{"explain", "node", "--access=api"}
	for _, w := range nodes {
		args = append(args, w.name)
	}
	reports := c.noderes(ctx, t, args...)
	if len(reports) != len(nodes) {
		t.Fatalf("%d reports of %d nodes", len(reports), len(nodes))
	}
	for _, r := range reports {
		for _, w := range nodes {
			if w.name != r.Metadata.Name {
				continue
			}
			for _, f := range r.Findings {
				*put(w) = append(*put(w), f.Code)
				w.text = append(w.text, f.Code+" ("+f.Confidence+"): "+f.Summary)
			}
		}
	}
	if len(pools) == 0 {
		return
	}
	args = []string{"explain", "nodepool", "--access=api"}
	for _, s := range pools {
		args = append(args, s.name)
	}
	of := map[string][]string{}
	for _, r := range append(c.noderes(ctx, t, args...), c.noderes(ctx, t, "budgets")...) {
		for _, f := range r.Findings {
			of[r.Metadata.Name] = append(of[r.Metadata.Name], f.Code)
		}
	}
	for _, w := range nodes {
		for _, code := range w.pool {
			if !slices.Contains(of[w.situation], code) {
				t.Errorf("%s: the NodePool has %v, not %s", w.situation, of[w.situation], code)
			}
		}
	}
}

// watch notes which nodes go.
func (c *cluster) watch(ctx context.Context, t *testing.T, nodes []*watched, opened time.Time) {
	t.Helper()
	for ; ctx.Err() == nil; time.Sleep(500 * time.Millisecond) {
		claims, wait := c.claims(ctx, t), false
		for _, w := range nodes {
			if _, there := claims[w.name]; !there && w.gone == 0 {
				w.gone = time.Since(opened)
			}
			wait = wait || w.goes && w.gone == 0
		}
		if after := time.Since(opened); after > acts || after > stays && !wait {
			return
		}
	}
}

// events notes what Karpenter said of each node, its NodeClaim and its NodePool.
func (c *cluster) events(ctx context.Context, t *testing.T, nodes []*watched) {
	t.Helper()
	for _, e := range c.list(ctx, t, events) {
		reason, _, _ := unstructured.NestedString(e.Object, "reason")
		if reason != "DisruptionBlocked" && reason != "Unconsolidatable" {
			continue
		}
		message, _, _ := unstructured.NestedString(e.Object, "message")
		kind, _, _ := unstructured.NestedString(e.Object, "involvedObject", "kind")
		name, _, _ := unstructured.NestedString(e.Object, "involvedObject", "name")
		for _, w := range nodes {
			if said := kind + ": " + message; (name == w.name || name == w.claim || kind == "NodePool" && name == w.situation) && !slices.Contains(w.said, said) {
				w.said = append(w.said, said)
			}
		}
	}
}

// passing are events that hide later ones: Karpenter drops what it would say of an object in the 2 min after it has said anything.
var passing = regexp.MustCompile("^Node(Claim)?: (Node isn't initialized|Node is nominated|Nodeclaim does not have an associated node)")

// judge compares, and prints the table.
func judge(t *testing.T, nodes []*watched) {
	t.Helper()
	var table strings.Builder
	out := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	expected, said := 0, 0
	fmt.Fprintln(out, "SITUATION\tNODE OF\tVERDICT\tKARPENTER\tAGREE")
	for _, w := range nodes {
		var wrong []string
		for _, code := range w.codes {
			if !slices.Contains(w.verdict, code) {
				wrong = append(wrong, "the plugin does not say "+code)
			}
		}
		for _, code := range w.later {
			if !slices.Contains(w.after, code) {
				wrong = append(wrong, "the plugin does not say "+code+" later")
			}
		}
		is := func(codes []string) bool {
			return slices.ContainsFunc(codes, func(code string) bool { return slices.Contains(w.verdict, code) })
		}
		went := w.gone > 0
		switch {
		case is(removes) && !went:
			wrong = append(wrong, "the plugin says that it goes")
		case is(keeps) && !is([]string{"drift-queued", "expiry-ignores-budget"}) && went:
			wrong = append(wrong, "the plugin says that it stays")
		}
		if went != w.goes {
			wrong = append(wrong, "not what the situation is made for")
		}
		if w.says != "" {
			expected++
			switch {
			case slices.ContainsFunc(w.said, regexp.MustCompile(w.says).MatchString):
				said++
			case !slices.ContainsFunc(w.said, passing.MatchString):
				wrong = append(wrong, fmt.Sprintf("Karpenter's events do not say %q", w.says))
			}
		}
		did := "leaves it"
		if went {
			did = fmt.Sprintf("removes it after %.0f s", w.gone.Seconds())
		}
		verdict := strings.Join(w.verdict, " ")
		if extra := slices.DeleteFunc(slices.Clone(w.after), func(code string) bool { return slices.Contains(w.verdict, code) }); len(extra) > 0 {
			verdict += " (later " + strings.Join(extra, " ") + ")"
		}
		agree := "yes"
		if len(wrong) > 0 {
			agree = "NO: " + strings.Join(wrong, "; ")
			t.Errorf("%s, node of %q (%s): %s\nthe plugin: %s\nKarpenter's events: %s", w.situation, w.of, w.name, strings.Join(wrong, "; "), strings.Join(w.text, "\n  "), strings.Join(w.said, "\n  "))
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", w.situation, w.of, verdict, did, agree)
	}
	out.Flush()
	t.Logf("\n%s%d of %d reasons that Karpenter has events for are in its events; the others are hidden by earlier ones", table.String(), said, expected)
	if said*2 < expected {
		t.Errorf("Karpenter's events say %d of %d reasons", said, expected)
	}
}
