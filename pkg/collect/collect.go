// Package collect reads one moment of a live cluster into a snapshot. It is the
// only package that talks to a network; it judges nothing, and what it cannot
// have it notes as a gap.
package collect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/snapshot"
	"github.com/noderes/kubectl-noderes/pkg/workload"
)

// Request is what is asked for: nodes with their pods, and pods with the nodes
// they are on.
type Request struct {
	Pods  []types.NamespacedName
	Nodes []string
	// Select asks for the pods of a selection too, as many as its Most from their
	// nodes.
	Select *workload.Selection
	// Removal is how much is read of what decides whether nodes go. NodePools
	// bounds BudgetsOnly to some; none are all.
	Removal   Removal
	NodePools []string
	// Access bounds how; the zero value is AccessAPI. NodePods says how node pods
	// are made.
	Access   Access
	NodePods NodePods
	// Tool is what the bundle says of its maker.
	Tool string
	// Now is the moment of the snapshot where no answer of the API server tells it.
	Now time.Time
}

// An item is an object of a list. Of an object that several answers hold the
// one of the highest rank counts, of equal ones the first.
type item struct {
	object json.RawMessage
	rank   rank
}

type rank int

const (
	ofCluster rank = iota // of a list of the whole cluster, and trimmed
	ofNode                // of the list of a node's pods, which may be older than the next
	own                   // its own answer, or that of a selection
)

// kubeletTimeout bounds what is asked of a kubelet: one that is gone must not
// hold up the rest.
const kubeletTimeout = 10 * time.Second

// collector is one run.
type collector struct {
	client  *Client
	builder *snapshot.Builder
	work    sync.WaitGroup

	mu    sync.Mutex
	lists map[string]map[string]item // by resource, then by namespace and name
	// complete are the resources that were read whole, or were to be.
	complete map[string]bool
	server   string
	failed   map[string]error // subjects that could not be read
	// kubelets are the nodes whose kubelet told anything.
	kubelets map[string]bool

	nodes *nodeAccess
	// removed is closed when what decides whether nodes go has been read.
	removed chan struct{}
}

var errInterrupted = errors.New("interrupted")

// Collect reads what is asked for until it has all or ctx is done. Pods and
// nodes that are not there, or whose own object may not be read, are errors by
// "namespace/name" or "name"; everything else that is missing is a gap of the
// snapshot. The error is about the run as a whole.
func Collect(ctx context.Context, client *Client, want Request) (*snapshot.Snapshot, map[string]error, error) {
	c := &collector{client: client, builder: snapshot.NewBuilder(), lists: map[string]map[string]item{}, complete: map[string]bool{}, failed: map[string]error{}, kubelets: map[string]bool{}, removed: make(chan struct{})}
	c.nodes = newNodeAccess(ctx, client, want)
	c.work.Go(func() { c.version(ctx) })
	c.work.Go(func() {
		defer close(c.removed)
		if want.Removal != NoRemoval {
			c.removal(ctx, want)
		}
	})
	nodes := map[string]bool{}
	for _, name := range want.Nodes {
		nodes[name] = true
	}
	if want.Select != nil {
		chosen, err := c.choose(ctx, *want.Select)
		switch {
		case errors.Is(ctx.Err(), context.Canceled):
			return nil, nil, errInterrupted
		case err != nil:
			return nil, nil, err
		}
		for _, pod := range chosen {
			c.work.Go(func() { c.events(ctx, pod.name.Namespace, "Pod", pod.name.Name) })
			if pod.node != "" {
				nodes[pod.node] = true
				c.nodes.subjects.add(pod.node, pod.name)
			}
		}
	}
	var mu sync.Mutex
	var pods sync.WaitGroup
	for _, pod := range slices.Compact(slices.SortedFunc(slices.Values(want.Pods), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })) {
		pods.Go(func() {
			node, err := c.pod(ctx, pod)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				c.fail(pod.String(), err)
			} else if node != "" {
				nodes[node] = true
				c.nodes.subjects.add(node, pod)
			}
		})
	}
	pods.Wait()
	asked := slices.Clone(want.Nodes)
	for name := range nodes {
		c.work.Go(func() { c.node(ctx, name, slices.Contains(asked, name)) })
	}
	c.work.Wait()
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, nil, errInterrupted
	}
	if err := c.finish(); err != nil {
		return nil, nil, err
	}
	at := c.client.serverTime()
	if at.IsZero() {
		at = want.Now.UTC()
	}
	s, err := c.builder.Build(snapshot.Manifest{CapturedAt: at, Tool: want.Tool, Server: c.server})
	return s, c.failed, err
}

// finish writes the lists, and what the snapshot does not hold because nobody
// asked for it.
func (c *collector) finish() error {
	for resource, items := range c.lists {
		if resource == "pods" {
			maps.DeleteFunc(items, func(_ string, i item) bool { return isNodePod(i.object) })
		}
		keys := make([]string, 0, len(items))
		for key := range items {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		raws := make([]json.RawMessage, len(keys))
		for i, key := range keys {
			raws[i] = items[key].object
		}
		data, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": raws})
		if err != nil {
			return err
		}
		if err := c.builder.Add("cluster/"+resource+".json", append(data, '\n')); err != nil {
			return err
		}
		if _, known := c.complete[resource]; !known { // else all is there, or a gap says why not
			c.builder.Gap(snapshot.Gap{Path: "cluster/" + resource + ".json", Reason: snapshot.ReasonRefused, Detail: "only what concerns the pods and nodes asked for"})
		}
	}
	c.builder.Gap(snapshot.Gap{Path: "cluster", Reason: snapshot.ReasonRefused, Detail: "not asked for"})
	c.builder.Gap(snapshot.Gap{Path: "nodes", Reason: snapshot.ReasonRefused, Detail: "not asked for"})
	return nil
}

// version asks for the server's; a bundle does without.
func (c *collector) version(ctx context.Context) {
	data, err := c.client.get(ctx, "/version", nil)
	var v struct {
		GitVersion string `json:"gitVersion"`
	}
	if err == nil && json.Unmarshal(data, &v) == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.server = v.GitVersion
	}
}

// pod reads a pod that was asked for, and its events; node is the one it is on.
func (c *collector) pod(ctx context.Context, name types.NamespacedName) (node string, err error) {
	if err := segments(name.Namespace, name.Name); err != nil {
		return "", err
	}
	pods := "/api/v1/namespaces/" + url.PathEscape(name.Namespace) + "/pods"
	data, err := c.client.get(ctx, pods+"/"+url.PathEscape(name.Name), nil)
	if hasStatus(err, http.StatusNotFound) {
		notFound := fmt.Sprintf("pods %q not found in namespace %q", name.Name, name.Namespace)
		if near := workload.Nearest(c.namesThere(ctx, pods), name.Name); len(near) > 0 {
			notFound += "; nearest: " + strings.Join(near, ", ")
		}
		return "", errors.New(notFound)
	}
	if err != nil {
		return "", subjectError(err, "", fmt.Sprintf("get pods in namespace %q", name.Namespace))
	}
	var pod struct {
		Spec struct {
			NodeName string `json:"nodeName"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(data, &pod); err != nil {
		return "", fmt.Errorf("pod %s: the answer is no pod", name)
	}
	if err := c.keep("pods", data); err != nil {
		return "", err
	}
	c.work.Go(func() { c.events(ctx, name.Namespace, "Pod", name.Name) })
	if pod.Spec.NodeName != "" {
		err = segments(pod.Spec.NodeName)
	}
	return pod.Spec.NodeName, err
}

// node reads a node with its pods and what its kubelet tells. Asked says that
// it is a subject itself, and not only where one is.
func (c *collector) node(ctx context.Context, name string, asked bool) {
	if err := segments(name); err != nil {
		c.fail(name, err)
		return
	}
	base := "/api/v1/nodes/" + url.PathEscape(name)
	data, err := c.client.get(ctx, base, nil)
	if err == nil {
		err = c.keep("nodes", data)
	}
	switch {
	case err != nil && asked && (hasStatus(err, http.StatusNotFound) || !hasAnyStatus(err)):
		c.fail(name, subjectError(err, fmt.Sprintf("nodes %q not found", name), "get nodes"))
		return
	case err != nil:
		c.gap("cluster/nodes.json", err, "get nodes")
	}
	object := data
	var configz []byte
	var silent error
	var part sync.WaitGroup
	part.Go(func() { c.events(ctx, "default", "Node", name) })
	part.Go(func() {
		query := url.Values{"fieldSelector": {fields.OneTermEqualSelector("spec.nodeName", name).String()}, "resourceVersion": {"0"}}
		if err := c.list(ctx, "pods", "/api/v1/pods", query, ofNode); err != nil {
			// A path of its own: the pods of other nodes may well be there.
			c.gap("nodes/"+name+"/pods.json", err, "list pods of all namespaces")
		}
	})
	for file, endpoint := range map[string]string{"configz.json": "configz", "stats-summary.json": "stats/summary"} {
		part.Go(func() {
			data, err := c.kubelet(ctx, name, file, endpoint, redactKubelet)
			c.mu.Lock()
			defer c.mu.Unlock()
			switch {
			case err != nil:
				silent = cmp.Or(silent, unanswered(err))
			case endpoint == "configz":
				configz = data
			}
		})
	}
	part.Wait()
	switch {
	case c.nodeFiles(ctx, name, object, configz, silent):
	case silent != nil:
		c.gap("nodes/"+name+"/metrics-cadvisor.txt", silent, "get nodes/proxy")
	default:
		_, _ = c.kubelet(ctx, name, "metrics-cadvisor.txt", "metrics/cadvisor", trimMetrics)
	}
	if err != nil && asked && !c.told(name) {
		c.fail(name, subjectError(err, "", "get nodes"))
	}
}

// kubelet asks a node's kubelet for one file and keeps of it what keep does; an
// error has left a gap.
func (c *collector) kubelet(ctx context.Context, node, file, endpoint string, keep func([]byte) ([]byte, error)) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, kubeletTimeout)
	defer cancel()
	data, err := c.client.get(ctx, "/api/v1/nodes/"+url.PathEscape(node)+"/proxy/"+endpoint, nil)
	if err == nil {
		data, err = keep(data)
	}
	if err == nil {
		err = c.builder.Add("nodes/"+node+"/"+file, data)
	}
	if err != nil {
		c.gap("nodes/"+node+"/"+file, err, "get nodes/proxy")
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kubelets[node] = true
	return data, nil
}

// told says whether the kubelet of a node told anything.
func (c *collector) told(node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kubelets[node]
}

// events reads those about one object. Events about nodes are in the namespace
// default.
func (c *collector) events(ctx context.Context, namespace, kind, name string) {
	query := url.Values{"fieldSelector": {fields.Set{"involvedObject.kind": kind, "involvedObject.name": name}.AsSelector().String()}}
	if err := c.list(ctx, "events", "/api/v1/namespaces/"+url.PathEscape(namespace)+"/events", query, own); err != nil {
		c.gap("cluster/events.json", err, "list events in namespace "+namespace)
	}
}

// list reads all pages of a list, or nothing of it.
func (c *collector) list(ctx context.Context, resource, path string, query url.Values, as rank) error {
	items := map[string]item{}
	total := 0
	err := c.pages(ctx, path, query, func(page []json.RawMessage, _ int) error {
		for _, raw := range page {
			object, key, err := redact(raw, resource, as)
			if err != nil {
				return fmt.Errorf("an item of %s: %w", resource, err)
			}
			if total += len(object); total > snapshot.MaxFileBytes {
				return snapshot.ErrFileTooLarge
			}
			items[key] = item{object, as}
		}
		return nil
	})
	if err == nil {
		c.putAll(resource, items)
	}
	return err
}

// putAll puts a list's items there, or that it is empty.
func (c *collector) putAll(resource string, items map[string]item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lists[resource] == nil {
		c.lists[resource] = map[string]item{}
	}
	for key, it := range items {
		c.put(resource, key, it)
	}
}

// pages reads a list page by page; size is that of a page's answer.
func (c *collector) pages(ctx context.Context, path string, query url.Values, each func(items []json.RawMessage, size int) error) error {
	query.Set("limit", "500")
	for {
		data, err := c.client.get(ctx, path, query)
		if err != nil {
			return err
		}
		var page struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []json.RawMessage `json:"items"`
		}
		if err := json.Unmarshal(data, &page); err != nil {
			return errors.New("the answer is no list")
		}
		if err := each(page.Items, len(data)); err != nil {
			return err
		}
		if page.Metadata.Continue == "" {
			return nil
		}
		if page.Metadata.Continue == query.Get("continue") {
			return errors.New("the list's pages have no end")
		}
		query.Set("continue", page.Metadata.Continue)
		query.Del("resourceVersion") // the token names it
	}
}

// kinds are those of the items, which a typed list leaves out.
var kinds = map[string]metav1.TypeMeta{
	"pods":                   {APIVersion: "v1", Kind: "Pod"},
	"nodes":                  {APIVersion: "v1", Kind: "Node"},
	"events":                 {APIVersion: "v1", Kind: "Event"},
	"persistentvolumes":      {APIVersion: "v1", Kind: "PersistentVolume"},
	"persistentvolumeclaims": {APIVersion: "v1", Kind: "PersistentVolumeClaim"},
	"poddisruptionbudgets":   {APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
}

func init() {
	for _, k := range workload.Kinds() {
		kinds[k.Resource] = metav1.TypeMeta{APIVersion: k.APIVersion(), Kind: k.Kind}
	}
}

// keep redacts an object that was asked for by itself and puts it on its list.
func (c *collector) keep(resource string, data []byte) error {
	object, key, err := redact(data, resource, own)
	if err != nil {
		return fmt.Errorf("an item of %s: %w", resource, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(resource, key, item{object, own})
	return nil
}

func (c *collector) put(resource, key string, it item) {
	if c.lists[resource] == nil {
		c.lists[resource] = map[string]item{}
	}
	if known, ok := c.lists[resource][key]; !ok || known.rank < it.rank {
		c.lists[resource][key] = it
	}
}

func (c *collector) gap(path string, err error, right string) {
	reason, detail := reasonOf(err, right)
	c.builder.Gap(snapshot.Gap{Path: path, Reason: reason, Detail: detail})
}

func (c *collector) fail(subject string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed[subject] = err
}

// subjectError is that of an object that was asked for, by a name that the text
// notFound tells, or of a list of them.
func subjectError(err error, notFound, right string) error {
	switch {
	case notFound != "" && hasStatus(err, http.StatusNotFound):
		return errors.New(notFound)
	case hasStatus(err, http.StatusForbidden), hasStatus(err, http.StatusUnauthorized):
		return fmt.Errorf("%w (needed: %s)", err, right)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer in time (wanted: %s; see --timeout, --request-timeout)", right)
	}
	return err
}

func hasAnyStatus(err error) bool {
	var status *statusError
	return errors.As(err, &status)
}

// segments refuses names that would make another path of a request.
func segments(names ...string) error {
	for _, name := range names {
		if wrong := content.IsPathSegmentName(name); name == "" || len(wrong) > 0 {
			return fmt.Errorf("%q is no name of an object: %s", name, strings.Join(wrong, ", "))
		}
	}
	return nil
}
