package collect

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// Removal is how much of what decides whether nodes go is read: Karpenter's
// objects, the Cluster Autoscaler's status, and what they look at.
type Removal int

const (
	// NoRemoval leaves it all out.
	NoRemoval Removal = iota
	// BudgetsOnly are NodePools with their nodes and NodeClaims, by label: what
	// budgets are counted over. It does not grow with the rest of the cluster.
	BudgetsOnly
	// WholeCluster has besides what tells where pods could go: every node and
	// pod. Where neither Karpenter nor the autoscaler is there it is left out.
	WholeCluster
)

// NodePools is the subject of the error where NodePools cannot be read.
const NodePools = "nodepools.karpenter.sh"

const (
	poolLabel       = "karpenter.sh/nodepool"
	karpenterSource = "karpenter" // of events
	statusFile      = "cluster/cluster-autoscaler-status.yaml"
)

// The autoscaler's status, by its default name.
const (
	autoscalerSource    = "cluster-autoscaler"
	autoscalerNamespace = "kube-system"
	autoscalerStatus    = "cluster-autoscaler-status"
)

// cluster are the lists of the whole cluster that WholeCluster reads, besides
// Karpenter's own.
var cluster = []struct{ resource, path string }{
	{"nodes", "/api/v1/nodes"},
	{"pods", "/api/v1/pods"},
	{"persistentvolumes", "/api/v1/persistentvolumes"},
	{"persistentvolumeclaims", "/api/v1/persistentvolumeclaims"},
	{"poddisruptionbudgets", "/apis/policy/v1/poddisruptionbudgets"},
	{"deployments", "/apis/apps/v1/deployments"},
	{"daemonsets", "/apis/apps/v1/daemonsets"},
}

// removal reads what decides whether nodes go, as much as is wanted.
func (c *collector) removal(ctx context.Context, want Request) {
	karpenter := c.whole(ctx, NodePools, "/apis/karpenter.sh/v1/nodepools", "")
	if err := karpenter; err != nil && !hasStatus(err, http.StatusNotFound) {
		c.fail(NodePools, subjectError(err, "", "list "+NodePools))
	}
	served := !hasStatus(karpenter, http.StatusNotFound)
	if want.Removal == BudgetsOnly {
		if served {
			c.budgets(ctx, want.NodePools)
		} else {
			c.autoscaler(ctx) // without NodePools the question is of its node groups
		}
		return
	}
	autoscaled := c.autoscaler(ctx)
	if !served && !autoscaled {
		return
	}
	var part sync.WaitGroup
	defer part.Wait()
	for _, list := range cluster {
		part.Go(func() { _ = c.whole(ctx, list.resource, list.path, "") })
	}
	if autoscaled {
		part.Go(func() { c.eventsBy(ctx, autoscalerSource) })
	}
	if served {
		part.Go(func() { _ = c.whole(ctx, "nodeclaims.karpenter.sh", "/apis/karpenter.sh/v1/nodeclaims", "") })
		part.Go(func() { c.eventsBy(ctx, karpenterSource) })
		part.Go(func() { c.controllers(ctx, true) })
	}
}

// budgets reads what the budgets of some pools, or of all, are counted over.
func (c *collector) budgets(ctx context.Context, pools []string) {
	selector := poolLabel
	if len(pools) > 0 {
		pools = slices.Sorted(slices.Values(pools))
		selector += " in (" + strings.Join(slices.Compact(pools), ",") + ")"
	}
	var part sync.WaitGroup
	defer part.Wait()
	part.Go(func() { _ = c.whole(ctx, "nodes", "/api/v1/nodes", selector) })
	part.Go(func() { _ = c.whole(ctx, "nodeclaims.karpenter.sh", "/apis/karpenter.sh/v1/nodeclaims", selector) })
	part.Go(func() {
		c.eventsOf(ctx, "/api/v1/namespaces/default/events", "involvedObject.kind=NodePool", "list events in namespace default")
	})
	part.Go(func() { c.controllers(ctx, false) })
}

// whole reads a list of all there is, or of all that a label selects. It is not
// marked as a part then, and an error leaves a gap; of a resource that the API
// server does not know the gap says so.
func (c *collector) whole(ctx context.Context, resource, path, selector string) error {
	query := url.Values{}
	if selector != "" {
		query.Set("labelSelector", selector)
	}
	var err error
	if beside[resource] != nil {
		err = c.listBeside(ctx, resource, path, query)
	} else {
		err = c.list(ctx, resource, path, query, ofCluster)
	}
	c.mu.Lock()
	c.complete[resource] = err == nil
	c.mu.Unlock()
	file := "cluster/" + resource + ".json"
	switch {
	case err == nil:
	case hasStatus(err, http.StatusNotFound):
		c.builder.Gap(snapshot.Gap{Path: file, Reason: snapshot.ReasonNotFound, Detail: "the API server does not serve it"})
	default:
		c.gap(file, err, rightToList(resource))
	}
	return err
}

// rightToList names the right in full, and how far it has to reach.
func rightToList(resource string) string {
	right := "list " + resource
	if group, _, ok := strings.Cut(kinds[resource].APIVersion, "/"); ok {
		right += "." + group
	}
	switch resource {
	case "pods", "persistentvolumeclaims", "poddisruptionbudgets", "deployments", "daemonsets":
		right += " of all namespaces"
	}
	return right
}

// eventsBy reads what one component said of anything.
func (c *collector) eventsBy(ctx context.Context, component string) {
	c.eventsOf(ctx, "/api/v1/events", "source="+component, "list events of all namespaces")
}

func (c *collector) eventsOf(ctx context.Context, path, selector, right string) {
	if err := c.list(ctx, "events", path, url.Values{"fieldSelector": {selector}}, own); err != nil {
		c.gap("cluster/events.json", err, right)
	}
}

// autoscaler reads the Cluster Autoscaler's status, and says whether it has one.
// It is the only ConfigMap that is ever read.
func (c *collector) autoscaler(ctx context.Context) bool {
	data, err := c.client.get(ctx, "/api/v1/namespaces/"+autoscalerNamespace+"/configmaps/"+autoscalerStatus, nil)
	var status string
	if err == nil {
		status, err = statusOf(data)
	}
	if err == nil {
		err = c.builder.Add(statusFile, []byte(status))
	}
	switch {
	case err == nil:
		return true
	case hasStatus(err, http.StatusNotFound):
		c.builder.Gap(snapshot.Gap{Path: statusFile, Reason: snapshot.ReasonNotFound, Detail: "there is no such ConfigMap in " + autoscalerNamespace})
	default:
		c.gap(statusFile, err, "get configmaps/"+autoscalerStatus+" in namespace "+autoscalerNamespace)
	}
	return false
}

func statusOf(configMap []byte) (string, error) {
	var o struct {
		Data struct {
			Status *string `json:"status"`
		} `json:"data"`
	}
	if err := json.Unmarshal(configMap, &o); err != nil {
		return "", errors.New("the answer is no ConfigMap")
	}
	if o.Data.Status == nil {
		return "", errors.New("the ConfigMap has no status")
	}
	return *o.Data.Status, nil
}
