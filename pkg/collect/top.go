package collect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/noderes/kubectl-noderes/pkg/cadvisor"
	"github.com/noderes/kubectl-noderes/pkg/kubeletstats"
	"github.com/noderes/kubectl-noderes/pkg/promtext"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// TopRequest is what a table compares: pods, or nodes.
type TopRequest struct {
	// OfNodes asks for nodes, those of Names or all.
	OfNodes bool
	// Namespace and Node keep a table of pods to those of one; "" is all.
	Namespace, Node string
	// Names are the pods, of one namespace, or the nodes.
	Names []string
	// MostNodes bounds the kubelets that are asked.
	MostNodes int
	Tool      string
}

// Top reads what a table shows, again and again: the API server's pods and, of
// their nodes, the kubelets' use. What does not change while a kubelet runs is
// read once.
type Top struct {
	client *Client
	want   TopRequest
	// once are the answers by path that do not change.
	once map[string][]byte
}

// NewTop reads through a client.
func NewTop(client *Client, want TopRequest) *Top {
	return &Top{client: client, want: want, once: map[string][]byte{}}
}

// TopReading is one moment of it.
type TopReading struct {
	Snapshot *snapshot.Snapshot
	// Failed are names that could not be read, by name.
	Failed map[string]error
	// NodesLeft are nodes whose kubelets were not asked, for they were too many.
	NodesLeft int
}

// node is one whose kubelet is asked, with how many of the pods it has.
type topNode struct {
	name string
	pods int
}

// Read reads once. The error is about the reading as a whole.
func (t *Top) Read(ctx context.Context, now time.Time) (TopReading, error) {
	c := &collector{client: t.client, builder: snapshot.NewBuilder(), lists: map[string]map[string]item{}, complete: map[string]bool{}, failed: map[string]error{}, kubelets: map[string]bool{}}
	nodes, err := t.subjects(ctx, c)
	if errors.Is(ctx.Err(), context.Canceled) {
		return TopReading{}, errInterrupted
	}
	if err != nil {
		return TopReading{}, err
	}
	slices.SortFunc(nodes, func(a, b topNode) int { return cmp.Or(cmp.Compare(b.pods, a.pods), cmp.Compare(a.name, b.name)) })
	asked := nodes[:min(len(nodes), max(t.want.MostNodes, 1))]
	var mu sync.Mutex
	used := map[string][]byte{}
	for _, n := range asked {
		c.work.Go(func() {
			for path, data := range t.node(ctx, c, n.name) {
				mu.Lock()
				used[path] = data
				mu.Unlock()
			}
		})
	}
	c.work.Wait()
	t.once = used // of nodes that are gone nothing is kept
	if errors.Is(ctx.Err(), context.Canceled) {
		return TopReading{}, errInterrupted
	}
	if err := c.finish(); err != nil {
		return TopReading{}, err
	}
	at := c.client.serverTime()
	if at.IsZero() {
		at = now.UTC()
	}
	s, err := c.builder.Build(snapshot.Manifest{CapturedAt: at, Tool: t.want.Tool})
	return TopReading{s, c.failed, len(nodes) - len(asked)}, err
}

// subjects reads the pods and the names of their nodes, or of the nodes asked for.
func (t *Top) subjects(ctx context.Context, c *collector) ([]topNode, error) {
	if t.want.OfNodes {
		return t.nodes(ctx, c)
	}
	pods := map[string][]json.RawMessage{}
	total := 0
	add := func(pod *corev1.Pod) error {
		if len(t.want.Names) == 0 && (pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed) {
			return nil
		}
		slim, err := slimPod(pod)
		if err != nil {
			return err
		}
		if total += len(slim); total > snapshot.MaxFileBytes {
			return errors.New("the pods are too many to compare: name a namespace or a node")
		}
		pods[pod.Spec.NodeName] = append(pods[pod.Spec.NodeName], slim)
		return nil
	}
	base := "/api/v1/pods"
	where := "of all namespaces"
	if t.want.Namespace != "" {
		if err := segments(t.want.Namespace); err != nil {
			return nil, err
		}
		base, where = "/api/v1/namespaces/"+url.PathEscape(t.want.Namespace)+"/pods", fmt.Sprintf("in namespace %q", t.want.Namespace)
	}
	var err error
	if len(t.want.Names) > 0 {
		err = t.named(ctx, c, base, add)
	} else {
		query := url.Values{}
		if t.want.Node != "" {
			query.Set("fieldSelector", fields.OneTermEqualSelector("spec.nodeName", t.want.Node).String())
		}
		err = subjectError(eachPod(ctx, c.client, base, query, add), "", "list pods "+where)
	}
	if err != nil {
		return nil, err
	}
	if t.want.Node != "" && len(pods) == 0 {
		err := segments(t.want.Node)
		if err == nil {
			_, err = c.client.get(ctx, "/api/v1/nodes/"+url.PathEscape(t.want.Node), nil)
		}
		if hasStatus(err, http.StatusNotFound) || err != nil && !hasAnyStatus(err) {
			return nil, subjectError(err, fmt.Sprintf("nodes %q not found", t.want.Node), "get nodes")
		}
	}
	c.touch("pods")
	var nodes []topNode
	for node, items := range pods {
		if node != "" && segments(node) == nil {
			nodes = append(nodes, topNode{node, len(items)})
		}
		for _, item := range items {
			if err := c.keep("pods", item); err != nil {
				return nil, err
			}
		}
	}
	return nodes, nil
}

// named reads pods by their names. Those that cannot be had are failed.
func (t *Top) named(ctx context.Context, c *collector, base string, add func(*corev1.Pod) error) error {
	for _, name := range slices.Compact(slices.Sorted(slices.Values(t.want.Names))) {
		err := segments(name)
		var pod corev1.Pod
		if err == nil {
			if err = c.client.one(ctx, base+"/"+url.PathEscape(name), &pod); err != nil {
				err = subjectError(err, fmt.Sprintf("pods %q not found in namespace %q", name, t.want.Namespace), fmt.Sprintf("get pods in namespace %q", t.want.Namespace))
			}
		}
		if err != nil {
			c.fail(name, err)
			continue
		}
		if err := add(&pod); err != nil {
			return err
		}
	}
	return nil
}

// eachPod reads a list of pods. Of it no more than a page is held.
func eachPod(ctx context.Context, client *Client, path string, query url.Values, each func(*corev1.Pod) error) error {
	return eachPage(ctx, client, path, query, func(list *corev1.PodList) error {
		for i := range list.Items {
			if err := each(&list.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachPage reads a list page by page, in protobuf where the server can.
func eachPage[L any, P interface {
	*L
	Unmarshal([]byte) error
	GetContinue() string
}](ctx context.Context, client *Client, path string, query url.Values, each func(P) error) error {
	query.Set("limit", "500")
	for {
		data, err := client.getAs(ctx, path, query, protobuf)
		if err != nil {
			return err
		}
		var page P = new(L)
		if err := decodeList(data, page); err != nil {
			return err
		}
		if err := each(page); err != nil {
			return err
		}
		switch next := page.GetContinue(); next {
		case "":
			return nil
		case query.Get("continue"):
			return errors.New("the list's pages have no end")
		default:
			query.Set("continue", next)
			query.Del("resourceVersion") // the token names it
		}
	}
}

// one reads one object.
func (c *Client) one(ctx context.Context, path string, object any) error {
	data, err := c.get(ctx, path, nil)
	if err != nil {
		return err
	}
	if json.Unmarshal(data, object) != nil {
		return errors.New("the answer is no object of that kind")
	}
	return nil
}

// slimPod is what a table needs of a pod.
func slimPod(pod *corev1.Pod) ([]byte, error) {
	slim := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}}
	for _, key := range []string{corev1.MirrorPodAnnotationKey, "kubernetes.io/config.hash"} {
		if v, ok := pod.Annotations[key]; ok {
			metav1.SetMetaDataAnnotation(&slim.ObjectMeta, key, v)
		}
	}
	slim.Spec.NodeName, slim.Spec.Resources = pod.Spec.NodeName, pod.Spec.Resources
	bare := func(all []corev1.Container) (out []corev1.Container) {
		for _, k := range all {
			out = append(out, corev1.Container{Name: k.Name, Resources: k.Resources, RestartPolicy: k.RestartPolicy})
		}
		return out
	}
	slim.Spec.InitContainers, slim.Spec.Containers = bare(pod.Spec.InitContainers), bare(pod.Spec.Containers)
	slim.Status.Phase, slim.Status.QOSClass, slim.Status.Reason = pod.Status.Phase, pod.Status.QOSClass, pod.Status.Reason
	slim.Status.InitContainerStatuses, slim.Status.ContainerStatuses = pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses
	return json.Marshal(slim)
}

// nodes reads the nodes asked for, and their pods, which are counted.
func (t *Top) nodes(ctx context.Context, c *collector) ([]topNode, error) {
	var nodes []topNode
	if len(t.want.Names) == 0 {
		err := eachPage(ctx, c.client, "/api/v1/nodes", url.Values{}, func(list *corev1.NodeList) error {
			for i := range list.Items {
				node := &list.Items[i]
				if segments(node.Name) != nil {
					continue
				}
				if nodes = append(nodes, topNode{name: node.Name}); len(nodes) > max(t.want.MostNodes, 1) {
					continue
				}
				if err := c.keepNode(node); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, subjectError(err, "", "list nodes")
		}
		c.touch("nodes")
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(t.want.Names))) {
		err := segments(name)
		var node corev1.Node
		if err == nil {
			err = c.client.one(ctx, "/api/v1/nodes/"+url.PathEscape(name), &node)
		}
		if err == nil {
			err = c.keepNode(&node)
		}
		if err != nil {
			c.fail(name, subjectError(err, fmt.Sprintf("nodes %q not found", name), "get nodes"))
			continue
		}
		nodes = append(nodes, topNode{name: name})
	}
	// The first of the list are those that are kept.
	slices.SortFunc(nodes, func(a, b topNode) int { return strings.Compare(a.name, b.name) })
	for _, n := range nodes[:min(len(nodes), max(t.want.MostNodes, 1))] {
		c.work.Go(func() {
			query := url.Values{"fieldSelector": {fields.OneTermEqualSelector("spec.nodeName", n.name).String()}, "resourceVersion": {"0"}}
			err := eachPod(ctx, c.client, "/api/v1/pods", query, func(pod *corev1.Pod) error {
				slim, err := slimPod(pod)
				if err != nil {
					return err
				}
				return c.keep("pods", slim)
			})
			if err == nil {
				c.touch("pods")
			}
			if err != nil {
				c.gap("nodes/"+n.name+"/pods.json", err, "list pods of all namespaces")
			}
		})
	}
	c.work.Wait()
	return nodes, nil
}

// keepNode keeps what a table needs of a node.
func (c *collector) keepNode(node *corev1.Node) error {
	slim := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID}}
	slim.Status.Capacity, slim.Status.Allocatable, slim.Status.NodeInfo = node.Status.Capacity, node.Status.Allocatable, node.Status.NodeInfo
	data, err := json.Marshal(slim)
	if err != nil {
		return err
	}
	return c.keep("nodes", data)
}

// touch makes a list that may be empty one that was read.
func (c *collector) touch(resource string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lists[resource] == nil {
		c.lists[resource] = map[string]item{}
	}
}

// node asks a kubelet. What does not change is returned by its path.
func (t *Top) node(ctx context.Context, c *collector, name string) map[string][]byte {
	ctx, cancel := context.WithTimeout(ctx, kubeletTimeout)
	defer cancel()
	base := "/api/v1/nodes/" + url.PathEscape(name) + "/proxy/"
	c.builder.Gap(snapshot.Gap{Path: "nodes/" + name, Reason: snapshot.ReasonRefused, Detail: "files of the node are not read through the API"})
	kept := map[string][]byte{}
	var mu sync.Mutex
	var work sync.WaitGroup
	for _, part := range []struct {
		file, endpoint string
		query          url.Values
		once           bool
		take           func([]byte) ([]byte, error)
	}{
		{"configz.json", "configz", nil, true, redactKubelet},
		{"stats-summary.json", "stats/summary", url.Values{"only_cpu_and_memory": {"true"}}, false, redactKubelet},
		{"metrics-cadvisor.txt", "metrics/cadvisor", nil, false, trimMetrics},
	} {
		work.Go(func() {
			path := base + part.endpoint
			data, known := t.once[path]
			var err error
			if !known {
				if data, err = c.client.get(ctx, path, part.query); err == nil {
					data, err = part.take(data)
				}
			}
			if err == nil {
				if part.once {
					mu.Lock()
					kept[path] = data
					mu.Unlock()
				}
				err = c.builder.Add("nodes/"+name+"/"+part.file, slices.Clone(data))
			}
			if err != nil {
				c.gap("nodes/"+name+"/"+part.file, err, "get nodes/proxy")
			}
		})
	}
	work.Wait()
	return kept
}

// keptSeries are those of /metrics/cadvisor that any question reads.
var keptSeries = append(kubeletstats.Series(), cadvisor.Series...)

// trimMetrics keeps the series that are read.
func trimMetrics(data []byte) ([]byte, error) {
	kept := promtext.Keep(data, keptSeries...)
	if len(kept) == 0 {
		return nil, errors.New("the kubelet's answer has no series of cAdvisor's")
	}
	return kept, nil
}

// KubeletGaps tells in one line which kubelets did not answer, and why; "" where
// all did.
func KubeletGaps(s *snapshot.Snapshot) string {
	gaps, _ := s.Gaps()
	var reasons []string
	nodes := map[string][]string{}
	for _, g := range gaps {
		parts := strings.Split(g.Path, "/")
		if len(parts) != 3 || parts[0] != "nodes" || g.Reason == snapshot.ReasonRefused {
			continue
		}
		reason := (&snapshot.GapError{Gap: g}).Error()
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
		if !slices.Contains(nodes[reason], parts[1]) {
			nodes[reason] = append(nodes[reason], parts[1])
		}
	}
	var out []string
	for _, reason := range reasons {
		text := "node " + nodes[reason][0]
		if more := len(nodes[reason]) - 1; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		out = append(out, text+": "+reason)
	}
	return strings.Join(out, "; ")
}
