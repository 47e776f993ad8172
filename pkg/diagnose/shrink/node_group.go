package shrink

import (
	"fmt"
	"slices"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/disruption/autoscaler"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// AutoscalerRules names the rules that answers about node groups follow.
const AutoscalerRules = "cluster-autoscaler 1.36 rules"

// NodeGroups are the names of the Cluster Autoscaler's node groups as they can
// be asked for: their last part where that is of one group alone.
func (c *Cluster) NodeGroups() []string {
	groups := c.autoscaler().status.Groups
	alike := map[string]int{}
	for _, g := range groups {
		alike[g.Name[strings.LastIndex(g.Name, "/")+1:]]++
	}
	var out []string
	for _, g := range groups {
		name := g.Name[strings.LastIndex(g.Name, "/")+1:]
		if name == "" || alike[name] > 1 {
			name = g.Name
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// AutoscalerNote says that an autoscaler runs whose node groups are not known;
// "" where none shows, or they are.
func (c *Cluster) AutoscalerNote() string {
	s := c.autoscaler()
	if s.statusErr == nil || !s.runs() {
		return ""
	}
	shown := "its status shows it"
	if s.controller.Source != "" {
		shown = strings.TrimPrefix(s.controller.Source, "api:")
	}
	return fmt.Sprintf("a Cluster Autoscaler runs (%s), which has no disruption budgets; its node groups are in %s: %s", shown, autoscalerStatusFile, cut(s.statusErr.Error(), 200))
}

// groupNamed finds a group by its whole name, or by the last part of it.
func (c *Cluster) groupNamed(name string) (*autoscaler.Group, bool) {
	var found []*autoscaler.Group
	groups := c.autoscaler().status.Groups
	for i := range groups {
		if groups[i].Name == name {
			return &groups[i], true
		}
		if strings.HasSuffix(groups[i].Name, "/"+name) {
			found = append(found, &groups[i])
		}
	}
	if len(found) != 1 || name == "" {
		return nil, false
	}
	return found[0], true
}

// NodeGroup tells what keeps a node group of the Cluster Autoscaler from
// shrinking. ok is false where its status has no such group.
func (c *Cluster) NodeGroup(name string) (answer Answer, ok bool) {
	g, ok := c.groupNamed(name)
	if !ok {
		return Answer{}, false
	}
	return Answer{Findings: append(c.groupBounds(*g), c.ofMembers(g)...)}, true
}

// GroupBudgets tells what bounds the removal of a group's nodes: the Cluster
// Autoscaler knows no budgets.
func (c *Cluster) GroupBudgets(name string) (answer Answer, ok bool) {
	g, ok := c.groupNamed(name)
	if !ok {
		return Answer{}, false
	}
	return Answer{Findings: c.groupBounds(*g)}, true
}

// groupBounds are what holds for a group as a whole: what stops it, or how many
// nodes may go.
func (c *Cluster) groupBounds(g autoscaler.Group) []report.Finding {
	c.noteAutoscaler()
	c.gaps.Miss("cluster/events.json", c.eventsErr, "whether the Cluster Autoscaler pauses after it added or failed to remove a node is not known", "collect events (list) of all namespaces")
	var out []report.Finding
	if f, ok := c.scaleDownOff(); ok {
		out = append(out, f)
	}
	if atMinimum(g) {
		out = append(out, c.groupMinSize(g))
	}
	if f, ok := c.pausing(); ok {
		out = append(out, f)
	}
	if f, ok := c.clusterUnhealthy(); ok {
		out = append(out, f)
	}
	if len(out) == 0 {
		out = append(out, c.groupOpen(g))
	}
	return out
}

// groupOpen says how many nodes the group may lose, which no budget bounds.
func (c *Cluster) groupOpen(g autoscaler.Group) report.Finding {
	s := c.autoscaler()
	atOnce, drained := max(0, s.settings.ScaleDownParallelism), max(0, s.settings.DrainParallelism)
	confidence := s.bound(autoscaler.FlagScaleDownParallelism)
	if s.stale(c.at) || c.eventsErr != nil {
		confidence = report.Likely
	}
	f := report.NewFinding(report.BudgetsOpen, confidence, groupSubject(g),
		fmt.Sprintf("Node group %s may lose %d of %d nodes, to its minimum of %d; the Cluster Autoscaler has no disruption budgets: it removes at most %d nodes at once, and of those with pods to evict %d, in the whole cluster.", cut(g.Name, 200), g.Room(), g.Size(), g.Min, atOnce, min(drained, atOnce)),
		groupField(g, "health.cloudProviderTarget", fmt.Sprint(g.Size()), "the nodes that the cloud provider was told to run"),
		groupField(g, "health.minSize", fmt.Sprint(g.Min), "its minimum; its maximum is "+fmt.Sprint(g.Max)),
		groupField(g, "scaleDown.candidates", fmt.Sprint(g.ScaleDown.Candidates), "nodes that it found unneeded"),
		s.setting(autoscaler.FlagScaleDownParallelism, fmt.Sprint(atOnce), "nodes that go at once"),
		s.setting(autoscaler.FlagDrainParallelism, fmt.Sprint(drained), "of them with pods to evict"))
	f.Arithmetic = fmt.Sprintf("%d wanted - %d minimum = %d", g.Size(), g.Min, g.Room())
	return f
}

// ofMembers are the findings of the nodes that are tied to the group, folded.
func (c *Cluster) ofMembers(g *autoscaler.Group) []report.Finding {
	c.noteNodesOfGroups()
	if c.tooManyTies(c.autoscaler().status.Groups) {
		c.gaps.Lack("nodes of node group "+cut(g.Name, 200), "there are too many nodes and node groups to compare each with each", "what holds its nodes is not known; ask for a node", "")
		return nil
	}
	var found []report.Finding
	members := int64(0)
	for _, node := range c.karpenter.Nodes {
		n := c.nodeOf(node)
		a := n.autoscaled()
		if a == nil || a.group != g {
			continue
		}
		members++
		for _, f := range apply(nodeRules, n) {
			ofCluster := f.Subject.Kind == "ClusterAutoscaler"
			if ofCluster || f.Code == report.CAMinSize {
				continue // told of the group
			}
			found = append(found, f)
		}
	}
	if members < g.Health.Total {
		c.gaps.Lack("nodes of node group "+cut(g.Name, 200), fmt.Sprintf("the status counts %d, and %d are told by their provider ID or labels", g.Health.Total, members), "what holds the others is not known", "")
	}
	return foldFor(groupSubject(*g), found)
}

func (c *Cluster) noteNodesOfGroups() {
	c.gaps.Miss("cluster/nodes.json", c.nodesErr, "which nodes are in the node group is not known", "list nodes")
	c.gaps.Miss("cluster/pods.json", c.podsErr, "which pods hold its nodes is not known", "collect pods (list) of all namespaces")
}
