package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/collect/nodepod"
	"github.com/noderes/kubectl-noderes/pkg/collect/reader"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// subjects are the pods asked for by the node they are on.
type subjects struct {
	mu     sync.Mutex
	byNode map[string][]types.NamespacedName
}

func (s *subjects) add(node string, pod types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byNode == nil {
		s.byNode = map[string][]types.NamespacedName{}
	}
	s.byNode[node] = append(s.byNode[node], pod)
}

func (s *subjects) on(node string) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(slices.Values(s.byNode[node]), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
}

// target is a running container whose own cgroup is to be read.
type target struct {
	pod       types.NamespacedName
	container string
	folder    string // of its cgroup on the node
}

// readContainers reads the own cgroups of the containers asked for on a node, by
// commands in them. Configz tells how the kubelet names cgroups.
func (c *collector) readContainers(ctx context.Context, node string, configz []byte) {
	var targets []target
	for _, name := range c.nodes.subjects.on(node) {
		c.mu.Lock()
		object := c.lists["pods"][name.Namespace+"/"+name.Name].object
		c.mu.Unlock()
		targets = append(targets, targetsOf(name, object, configz)...)
	}
	sample := c.nodes.sample
	if len(targets) != 1 {
		sample = 0 // a sample has one moment, which several containers do not share
	}
	readings, errs := make([]reader.Reading, len(targets)), make([]error, len(targets))
	var all sync.WaitGroup
	for i, t := range targets {
		all.Go(func() {
			if denied := c.nodes.mayExec(ctx, c.client, t.pod.Namespace); len(denied) > 0 {
				errs[i] = &deniedError{denied, t.pod.Namespace}
				return
			}
			readings[i], errs[i] = c.client.readIn(ctx, t.pod.Namespace, t.pod.Name, t.container, reader.Options{Sample: sample, Container: true})
		})
	}
	all.Wait()
	timed := false
	for i, t := range targets {
		timed = c.keepContainer(node, t, readings[i], errs[i], !timed) || timed
	}
}

// keepContainer puts the cgroup of one container where it is on the node; with
// clock its moments are those of the samples.
func (c *collector) keepContainer(node string, t target, r reader.Reading, failed error, clock bool) bool {
	base := "nodes/" + node
	missing := func(at, reason, detail string) {
		c.builder.Gap(snapshot.Gap{Path: path.Join(base, at, t.folder), Reason: reason, Detail: detail})
	}
	own, err := ownCgroup(r, t)
	if failed == nil {
		failed = err
	}
	if failed != nil {
		reason, detail := failureOf(failed)
		if reason != snapshot.ReasonForbidden {
			detail = fmt.Sprintf("container %s of pod %s: %s; --access=node reads it from outside", t.container, t.pod, detail)
		}
		missing("root", reason, detail)
	} else {
		missing("root", snapshot.ReasonNotFound, "read whole: what is not here does not exist on the node")
	}
	if err != nil {
		return false
	}
	timed := false
	for k, sample := range r.Samples {
		if !sample.Whole {
			continue
		}
		folder := fmt.Sprintf("samples/%d", k)
		for _, f := range sample.Files {
			name := strings.TrimPrefix(strings.TrimPrefix(f.Path, cgroupFolder), own)
			at := path.Join(base, folder, "root", t.folder, name)
			if err := c.builder.Add(at, f.Data); err != nil {
				c.gap(at, err, "")
			}
		}
		missing(folder+"/root", snapshot.ReasonNotFound, "read whole: what is not here does not exist on the node")
		if at := moment(sample); at != nil && clock {
			if err := c.builder.Add(base+"/"+folder+"/at.json", at); err == nil {
				timed = true
			}
		}
	}
	return timed
}

var errOtherCgroup = errors.New("the command ran in another cgroup than the container's")

// ownCgroup is the path, below the mount, at which a container found its cgroup:
// "" with a cgroup namespace of its own.
func ownCgroup(r reader.Reading, t target) (string, error) {
	for _, f := range r.Once {
		if f.Path != "proc/self/cgroup" {
			continue
		}
		for line := range strings.SplitSeq(string(f.Data), "\n") {
			own, ok := strings.CutPrefix(line, "0::")
			switch {
			case !ok:
			case own == "/" || strings.HasPrefix(own, "/.."):
				return "", nil
			case strings.HasSuffix(t.folder, own): // without a cgroup namespace
				return own, nil
			default:
				return "", errOtherCgroup
			}
		}
	}
	if len(r.Samples) == 0 {
		return "", errors.New("nothing was read")
	}
	return "", errors.New("the container has no cgroup v2")
}

// targetsOf are the running containers of a pod. Where the kubelet's
// configuration is not known, cgroups are named by systemd below the root, as
// runtimes ask for by default.
func targetsOf(name types.NamespacedName, object, configz []byte) []target {
	var pod corev1.Pod
	if json.Unmarshal(object, &pod) != nil {
		return nil
	}
	var config struct {
		Kubelet struct {
			CgroupDriver string `json:"cgroupDriver"`
			CgroupRoot   string `json:"cgroupRoot"`
		} `json:"kubeletconfig"`
	}
	driver := cgroup.Systemd
	if json.Unmarshal(configz, &config) == nil && config.Kubelet.CgroupDriver == string(cgroup.Cgroupfs) {
		driver = cgroup.Cgroupfs
	}
	folder, err := cgroup.PodPath(driver, config.Kubelet.CgroupRoot, pod.Status.QOSClass, cgroup.PodUID(&pod))
	if err != nil {
		return nil
	}
	var targets []target
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		runtime, id, ok := strings.Cut(status.ContainerID, "://")
		if status.State.Running == nil || !ok || len(id) != 64 || strings.Trim(id, "0123456789abcdef") != "" {
			continue
		}
		targets = append(targets, target{name, status.Name, path.Join(cgroupFolder, folder, containerFolder(driver, runtime, id))})
	}
	return targets
}

// containerFolder is the name of a container's cgroup below its pod's.
func containerFolder(driver cgroup.Driver, runtime, id string) string {
	prefix := map[string]string{"containerd": "cri-containerd-", "cri-o": "crio-", "docker": "docker-"}[runtime]
	switch {
	case driver == cgroup.Systemd:
		return prefix + id + ".scope"
	case runtime == "cri-o":
		return prefix + id
	}
	return id
}

// mayExec asks once for each namespace.
func (a *nodeAccess) mayExec(ctx context.Context, client *Client, namespace string) []nodepod.Right {
	a.execMu.Lock()
	ask := a.exec[namespace]
	if ask == nil {
		ask = sync.OnceValue(func() []nodepod.Right { return client.denied(ctx, namespace, nodepod.ExecRights) })
		a.exec[namespace] = ask
	}
	a.execMu.Unlock()
	return ask()
}
