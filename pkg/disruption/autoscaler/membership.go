package autoscaler

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Tie is by what a node is taken for one of a node group. The API has no object that says so; cloud providers give nodes a provider ID
// or labels with the name of their group in it.
type Tie struct {
	// Groups are the indexes of the groups that it can be; more than one where a name stands for a set of them, as one for each zone.
	Groups []int
	// Field is where the name stands in the node, Value its text.
	Field, Value string
	// Exact: the provider ID names the group, which no other group's can.
	Exact bool
}

// TieOf looks for the node's group among those of the status. ok is false where nothing of the node names one of them, which proves
// nothing.
func TieOf(node *corev1.Node, groups []Group) (tie Tie, ok bool) {
	for _, t := range ties(node) {
		tie := Tie{Field: t.field, Value: t.value, Exact: t.exact}
		for i := range groups {
			if name := shortName(groups[i].Name); name != "" && t.names(name) {
				tie.Groups = append(tie.Groups, i)
			}
		}
		if len(tie.Groups) > 0 {
			return tie, true
		}
	}
	return Tie{}, false
}

// attempt is one way of naming a group.
type attempt struct {
	field, value string
	exact        bool
	names        func(group string) bool
}

// poolLabels are those by which providers tell the node pool that a node is of.
var poolLabels = []string{
	"eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name", "cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool",
	"agentpool", "kops.k8s.io/instancegroup", "doks.digitalocean.com/node-pool", "lke.linode.com/pool-id", "k8s.scaleway.com/pool-name",
	"hcloud/node-group", "yandex.cloud/node-group-id", "kwok-nodegroup",
}

const ownerAnnotation = "cluster.x-k8s.io/owner-name" // of the Cluster API: the MachineSet

// ties are the ways to name a group, the surest first.
func ties(node *corev1.Node) []attempt {
	var out []attempt
	if id := node.Spec.ProviderID; id != "" {
		segments := strings.FieldsFunc(id, func(r rune) bool { return r == '/' || r == ':' })
		instance := ""
		if len(segments) > 0 {
			instance = segments[len(segments)-1]
		}
		out = append(out, attempt{"spec.providerID", id, true, func(group string) bool {
			return len(segments) > 1 && slices.ContainsFunc(segments[:len(segments)-1], func(s string) bool { return strings.EqualFold(s, group) })
		}}, attempt{"spec.providerID", id, false, func(group string) bool {
			base, managed := strings.CutSuffix(group, "grp")
			rest, ok := strings.CutPrefix(instance, base)
			return managed && strings.HasSuffix(base, "-") && ok && isWord(rest)
		}})
	}
	for _, label := range poolLabels {
		if value := node.Labels[label]; value != "" {
			field := "metadata.labels[" + label + "]"
			out = append(out, attempt{field, value, false, func(group string) bool { return group == value }},
				attempt{field, value, false, func(group string) bool { return isGroupOf(group, value) }})
		}
	}
	if owner := node.Annotations[ownerAnnotation]; owner != "" {
		out = append(out, attempt{"metadata.annotations[" + ownerAnnotation + "]", owner, false, func(group string) bool {
			rest, ok := strings.CutPrefix(owner, group)
			return ok && (rest == "" || rest[0] == '-' && isWord(rest[1:]))
		}})
	}
	// A label of the operator's own may hold the very name.
	for _, label := range slices.Sorted(maps.Keys(node.Labels)) {
		domain, _, _ := strings.Cut(label, "/")
		if value := node.Labels[label]; value != "" && !strings.HasSuffix(domain, "kubernetes.io") && !strings.HasSuffix(domain, "k8s.io") {
			out = append(out, attempt{"metadata.labels[" + label + "]", value, false, func(group string) bool { return group == value }})
		}
	}
	return out
}

// shortName is the last part of a group's name, which is a URL with some providers.
func shortName(group string) string { return group[strings.LastIndex(group, "/")+1:] }

// isGroupOf knows how providers make a group's name of that of the pool.
func isGroupOf(group, pool string) bool {
	if rest, ok := strings.CutPrefix(group, "eks-"+pool+"-"); ok && isUUID(rest) {
		return true
	}
	if rest, ok := strings.CutPrefix(group, "aks-"+pool+"-"); ok {
		number, ok := strings.CutSuffix(rest, "-vmss")
		return ok && isWord(number)
	}
	if strings.HasPrefix(group, "eksctl-") && strings.Contains(group, "-nodegroup-"+pool+"-NodeGroup-") {
		return true
	}
	if rest, ok := strings.CutPrefix(group, pool+"."); ok && strings.Contains(rest, ".") { // kops: POOL.CLUSTER
		return true
	}
	if strings.HasPrefix(group, "gke-") {
		_, rest, ok := strings.Cut(group, "-"+pool+"-")
		hash, managed := strings.CutSuffix(rest, "-grp")
		return ok && managed && isWord(hash)
	}
	return false
}

// isWord: letters and digits alone, one at least.
func isWord(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') })
}

func isUUID(s string) bool {
	parts := strings.Split(s, "-")
	if len(s) != 36 || len(parts) != 5 {
		return false
	}
	return !slices.ContainsFunc(parts, func(p string) bool { return !isWord(p) })
}
