package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/noderes/kubectl-noderes/pkg/collect/nodepod"
	"github.com/noderes/kubectl-noderes/pkg/collect/reader"
)

const (
	// createMore is how long the answer to a creation is waited for after the run
	// was ended: who goes earlier does not know whether there is a pod.
	createMore = 2 * time.Second
	// removal bounds the deletion of a node pod. It has time of its own: what
	// ended the run must not keep its pod alive.
	removal = 5 * time.Second
	// reserve is what is left of a run's time for it.
	reserve = 2 * time.Second
	// maxNodePods bounds the node pods that are there at once.
	maxNodePods = 8
)

// NodePods is how node pods are made.
type NodePods struct {
	nodepod.Options
	// Sample is the time between two samples, 0 for one sample.
	Sample time.Duration
	// RunID gives a new name for each pod.
	RunID func() string
	// Warn tells of a pod that could not be deleted.
	Warn func(string)
}

// nodePods are those of one run.
type nodePods struct {
	NodePods
	client *Client
	slot   chan struct{}
	denied func() []nodepod.Right
}

func newNodePods(ctx context.Context, client *Client, o NodePods) *nodePods {
	return &nodePods{NodePods: o, client: client, slot: make(chan struct{}, maxNodePods), denied: sync.OnceValue(func() []nodepod.Right {
		return client.denied(ctx, o.Namespace, nodepod.Rights)
	})}
}

// read makes a pod on the node, reads in it, and takes it away. What was read
// before an error is there. Without are paths that the node turned out not to have.
func (p *nodePods) read(ctx context.Context, node string) (reading reader.Reading, without []string, err error) {
	select {
	case p.slot <- struct{}{}:
		defer func() { <-p.slot }()
	case <-ctx.Done():
		return reading, nil, ctx.Err()
	}
	if denied := p.denied(); len(denied) > 0 {
		return reading, nil, &deniedError{denied, p.Namespace}
	}
	life := nodepod.MaxLife
	if end, ok := ctx.Deadline(); ok {
		left := time.Until(end)
		life = left + removal
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-min(reserve, left/4)))
		defer cancel()
	}
	run := nodepod.Run{Node: node, ID: p.RunID(), Life: life}
	for {
		reading, lacks, err := p.once(ctx, run)
		if len(lacks) == 0 || len(run.Without) > 0 {
			return reading, run.Without, err
		}
		run.ID, run.Without = p.RunID(), lacks
	}
}

// once is one attempt. Lacks are paths that the node turned out not to have.
func (p *nodePods) once(ctx context.Context, run nodepod.Run) (reading reader.Reading, lacks []string, err error) {
	if err := ctx.Err(); err != nil {
		return reading, nil, err
	}
	wanted := nodepod.Pod(p.Options, run)
	pod, err := p.create(ctx, wanted)
	if pod == nil && !madeNothing(err) {
		pod = wanted // perhaps
	}
	if pod != nil {
		defer func() {
			if failed := p.remove(pod); failed != nil && p.Warn != nil {
				p.Warn(fmt.Sprintf("pod %s in namespace %s could not be deleted (%v); it ends by itself within %d s; see kubectl noderes cleanup",
					pod.Name, pod.Namespace, failed, *wanted.Spec.ActiveDeadlineSeconds))
			}
		}()
	}
	if err != nil {
		return reading, nil, err
	}
	if lacks, err = p.running(ctx, pod); err != nil {
		return reading, lacks, err
	}
	reading, err = p.client.readIn(ctx, pod.Namespace, pod.Name, nodepod.Container, nodepod.Reader(string(pod.UID), p.Sample))
	return reading, nil, err
}

// create makes the pod. It outlasts the run by a little: see createMore.
func (p *nodePods) create(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	unbroken, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(createMore, cancel)
	})
	defer stop()
	data, err := p.client.send(unbroken, http.MethodPost, podsPath(pod.Namespace), nil, pod)
	if err != nil {
		var status *statusError
		if errors.As(err, &status) && status.code < 500 {
			return nil, &refusedError{nodepod.Refusal(p.Options, status.code, status.message), status.code}
		}
		if unbroken.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	var made corev1.Pod
	if err := json.Unmarshal(data, &made); err != nil || made.UID == "" || made.Name != pod.Name {
		return nil, errors.New("the answer to the creation of a pod is no pod")
	}
	return &made, nil
}

// refusedError is the API server's, in our words.
type refusedError struct {
	text string
	code int
}

func (e *refusedError) Error() string { return e.text }

// madeNothing says whether an error proves that no pod was made.
func madeNothing(err error) bool {
	var refused *refusedError
	return errors.As(err, &refused)
}

// running waits until the pod runs, or will not.
func (p *nodePods) running(ctx context.Context, pod *corev1.Pod) (lacks []string, err error) {
	var why string
	waited := time.Now()
	for pause := 100 * time.Millisecond; ; pause = min(pause*3/2, time.Second) {
		now, err := p.client.getPod(ctx, pod.Namespace, pod.Name)
		switch {
		case hasStatus(err, http.StatusNotFound) || err == nil && now.UID != pod.UID:
			return nil, errors.New("somebody deleted the node pod")
		case err != nil && ctx.Err() == nil && hasAnyStatus(err):
			return nil, err
		case err == nil && now.Status.Phase == corev1.PodRunning && ready(now):
			return nil, nil
		case err == nil:
			var events []corev1.Event
			if time.Since(waited) > 2*time.Second {
				waited = time.Now()
				events = p.client.eventsOf(ctx, pod)
			}
			if lacks := nodepod.Lacks(events); len(lacks) > 0 {
				return lacks, fmt.Errorf("the node has no %s", lacks[0])
			}
			reason, final := nodepod.Waits(p.Options, now, events)
			if final {
				return nil, errors.New(reason)
			}
			if reason != "" {
				why = reason
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			if why == "" {
				why = "the node did not start the pod in time; see --timeout"
			}
			return nil, fmt.Errorf("%s: %w", why, ctx.Err())
		}
	}
}

// ready says whether the container runs.
func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == nodepod.Container && c.State.Running != nil {
			return true
		}
	}
	return false
}

// remove deletes the pod at once, and makes sure that it is gone. A pod of the
// same name that is another is left alone.
func (p *nodePods) remove(pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(context.Background(), removal)
	defer cancel()
	return p.client.removePod(ctx, pod)
}

// removePod deletes a node pod and waits until it is gone. Of a pod whose UID is
// not known, because no answer told it, the labels must be those of its run.
func (c *Client) removePod(ctx context.Context, pod *corev1.Pod) error {
	grace := int64(0)
	sure := pod.UID != ""
	absent := 0
	var last error
	for {
		pause := 300 * time.Millisecond
		now, err := c.getPodNow(ctx, pod.Namespace, pod.Name)
		switch {
		case hasStatus(err, http.StatusNotFound):
			// A creation whose answer was lost may yet come to pass.
			if absent++; sure || absent > 3 {
				return nil
			}
		case err == nil && (pod.UID != "" && now.UID != pod.UID || !nodepod.Ours(now) || now.Labels[nodepod.RunID] != pod.Labels[nodepod.RunID]):
			return nil // another's
		case err == nil:
			sure = true
			uid := now.UID
			_, err = c.send(ctx, http.MethodDelete, podPath(pod.Namespace, pod.Name), nil, metav1.DeleteOptions{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}, GracePeriodSeconds: &grace, Preconditions: &metav1.Preconditions{UID: &uid},
			})
			last = err
			if err == nil {
				pause = 20 * time.Millisecond // and look
			}
		default:
			last = err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			if last == nil {
				last = ctx.Err()
			}
			return shortError(last)
		}
	}
}

func shortError(err error) error {
	_, detail := reasonOf(err, "delete pods")
	return errors.New(detail)
}

func podsPath(namespace string) string {
	return "/api/v1/namespaces/" + url.PathEscape(namespace) + "/pods"
}

func podPath(namespace, name string) string {
	return podsPath(namespace) + "/" + url.PathEscape(name)
}

func (c *Client) getPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	data, err := c.get(ctx, podPath(namespace, name), nil)
	return decodePod(data, err)
}

// getPodNow is getPod without waiting for other requests.
func (c *Client) getPodNow(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	data, err := c.send(ctx, http.MethodGet, podPath(namespace, name), nil, nil)
	return decodePod(data, err)
}

func decodePod(data []byte, err error) (*corev1.Pod, error) {
	if err != nil {
		return nil, err
	}
	var pod corev1.Pod
	if err := json.Unmarshal(data, &pod); err != nil {
		return nil, errors.New("the answer is no pod")
	}
	return &pod, nil
}

// eventsOf are those about a pod, none where they may not be listed.
func (c *Client) eventsOf(ctx context.Context, pod *corev1.Pod) []corev1.Event {
	query := url.Values{"limit": {"100"}, "fieldSelector": {fields.Set{"involvedObject.uid": string(pod.UID)}.AsSelector().String()}}
	data, err := c.get(ctx, "/api/v1/namespaces/"+url.PathEscape(pod.Namespace)+"/events", query)
	var list corev1.EventList
	if err != nil || json.Unmarshal(data, &list) != nil {
		return nil
	}
	return list.Items
}
