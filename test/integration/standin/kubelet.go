// Package standin answers the API server in a kubelet's place, from a recording.
package standin

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// Paths of the kubelet's API that it answers.
const (
	Configz  = "/configz"
	Summary  = "/stats/summary"
	CAdvisor = "/metrics/cadvisor"
	Pods     = "/pods"
)

// A Kubelet answers with what was recorded on one node. The pods have other UIDs in the cluster than on record; every
// answer has the cluster's.
type Kubelet struct {
	mu      sync.Mutex
	answers map[string]answer
	asked   map[string]int
	delay   time.Duration
	status  map[string]int
	fault   *fault

	machine *Machine // nil: runs no commands
}

type answer struct {
	contentType string
	body        []byte
}

// New takes configz from the recording and the other answers from <path>.gz in files, such as stats-summary.json.gz. Pods are the
// node's as they are in the cluster, uids maps the recorded ones to theirs.
func New(recorded *snapshot.Node, files fs.FS, pods []corev1.Pod, uids map[types.UID]types.UID) (*Kubelet, error) {
	k := &Kubelet{answers: map[string]answer{}, asked: map[string]int{}, status: map[string]int{}}
	configz, err := recorded.File("configz.json")
	if err != nil {
		return nil, err
	}
	summary, err := unzip(files, "stats-summary.json.gz")
	if err != nil {
		return nil, err
	}
	cadvisor, err := unzip(files, "metrics-cadvisor.txt.gz")
	if err != nil {
		return nil, err
	}
	list, err := json.Marshal(corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: pods})
	if err != nil {
		return nil, err
	}
	present := renamer(uids)
	k.answers[Configz] = answer{"application/json", configz}
	k.answers[Summary] = answer{"application/json", present(summary)}
	k.answers[CAdvisor] = answer{"text/plain; version=0.0.4", present(cadvisor)}
	k.answers[Pods] = answer{"application/json", list}
	return k, nil
}

// Run lets commands in containers be run on a machine.
func (k *Kubelet) Run(m *Machine) { k.machine = m }

// ServeHTTP answers GET, and runs commands.
func (k *Kubelet) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	k.mu.Lock()
	a, known := k.answers[req.URL.Path]
	k.asked[req.URL.Path]++
	delay, status := k.delay, k.status[req.URL.Path]
	k.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-req.Context().Done():
		return
	}
	switch {
	case strings.HasPrefix(req.URL.Path, Exec) && k.machine != nil:
		k.run(w, req)
	case status != 0:
		http.Error(w, http.StatusText(status), status)
	case !known:
		http.NotFound(w, req)
	case req.Method != http.MethodGet:
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
	default:
		w.Header().Set("Content-Type", a.contentType)
		_, _ = w.Write(a.body)
	}
}

// Answer replaces the answer to a path, if it is not nil, and returns the one before.
func (k *Kubelet) Answer(path string, body []byte) (before []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a := k.answers[path]
	before = a.body
	if body != nil {
		a.body = body
		k.answers[path] = a
	}
	return before
}

// Delay makes every later answer wait.
func (k *Kubelet) Delay(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.delay = d
}

// Fail answers a path with an HTTP status from now on, with 0 again with what was recorded.
func (k *Kubelet) Fail(path string, status int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.status[path] = status
}

// Asked is how often a path was asked for.
func (k *Kubelet) Asked(path string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked[path]
}

// renamer replaces UIDs as they are, and as they are in the names of systemd slices.
func renamer(uids map[types.UID]types.UID) func([]byte) []byte {
	var pairs []string
	for recorded, present := range uids {
		pairs = append(pairs, string(recorded), string(present),
			strings.ReplaceAll(string(recorded), "-", "_"), strings.ReplaceAll(string(present), "-", "_"))
	}
	r := strings.NewReplacer(pairs...)
	return func(data []byte) []byte { return []byte(r.Replace(string(data))) }
}

func unzip(files fs.FS, name string) ([]byte, error) {
	data, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out, err := io.ReadAll(r)
	return out, errors.Join(err, r.Close())
}
