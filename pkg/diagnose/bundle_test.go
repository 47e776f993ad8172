package diagnose

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// bundle is a bundle in the making: its files as text by path, and the objects
// that stand in cluster/ when it is opened. The first pod is the one that is
// asked about. A list that is nil is a file that is not there.
type bundle struct {
	t      testing.TB
	files  map[string]string
	pods   []corev1.Pod
	nodes  []corev1.Node
	events []corev1.Event
	node   string // whose files stand below nodes/
	driver cgroup.Driver
}

// Groups on a pod's way to the root, in place of a container's name.
const (
	podGroup      = "/pod"
	qosGroup      = "/qos"
	kubepodsGroup = "/kubepods"
)

// recorded takes one pod and its node from a recording below testdata/cases:
// the node's checkpoints, configuration, machine and kernel log, and of its
// cgroups those of the pod and above.
func recorded(archive, namespace, name string) func(testing.TB) *bundle {
	cut := sync.OnceValues(func() (*bundle, error) { return cutOut(archive, namespace, name) })
	return func(t testing.TB) *bundle {
		t.Helper()
		b, err := cut()
		if err != nil {
			t.Fatalf("%s: %v", archive, err)
		}
		b = b.clone()
		b.t = t
		return b
	}
}

func cutOut(archive, namespace, name string) (*bundle, error) {
	all, err := archiveFiles(archive)
	if err != nil {
		return nil, err
	}
	pods, errPods := itemsOf[corev1.Pod](all["cluster/pods.json"])
	nodes, errNodes := itemsOf[corev1.Node](all["cluster/nodes.json"])
	events, errEvents := itemsOf[corev1.Event](all["cluster/events.json"])
	if err := errors.Join(errPods, errNodes, errEvents); err != nil {
		return nil, err
	}
	b := &bundle{files: map[string]string{}, nodes: nodes, events: []corev1.Event{}, driver: cgroup.Systemd}
	for _, p := range pods {
		if p.Namespace == namespace && p.Name == name {
			b.pods = append(b.pods, p)
		}
	}
	if len(b.pods) != 1 {
		return nil, fmt.Errorf("%d pods %s/%s", len(b.pods), namespace, name)
	}
	b.node = b.pods[0].Spec.NodeName
	for _, e := range events {
		if o := e.InvolvedObject; o.Kind == "Node" || o.Namespace == namespace && o.Name == name {
			b.events = append(b.events, e)
		}
	}
	for file, text := range all {
		if b.keeps(file) {
			b.files[file] = text
		}
	}
	return b, nil
}

// keeps says whether a file of a recording bears on the bundle's pod.
func (b *bundle) keeps(file string) bool {
	if file == "bundle.json" || file == "gaps.json" {
		return true
	}
	rest, ok := strings.CutPrefix(file, "nodes/"+b.node+"/")
	if !ok {
		return false
	}
	switch {
	case rest == "configz.json", rest == "kernel.log", path.Base(rest) == "at.json":
		return true
	case strings.HasPrefix(rest, "root/var/lib/kubelet/"), strings.HasPrefix(rest, "root/sys/devices/"), strings.HasPrefix(rest, "root/proc/"):
		return true
	}
	_, rest, ok = strings.Cut(rest, "/root/sys/fs/cgroup/")
	if !ok {
		return false
	}
	inTree := "/" + rest
	if inTree == "/system.slice/cpu.weight" || strings.HasPrefix(inTree, b.dir(podGroup)+"/") {
		return true
	}
	return strings.HasPrefix(b.dir(podGroup), path.Dir(inTree))
}

// archives are the recordings that were unpacked, each once.
var archives sync.Map

func archiveFiles(archive string) (map[string]string, error) {
	load, _ := archives.LoadOrStore(archive, sync.OnceValues(func() (map[string]string, error) {
		return unpack("testdata/cases/" + archive + ".tar.gz")
	}))
	return load.(func() (map[string]string, error))()
}

func unpack(name string) (map[string]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		files[path.Clean(h.Name)] = string(data)
	}
}

func itemsOf[T any](list string) ([]T, error) {
	var l struct{ Items []T }
	err := json.Unmarshal([]byte(list), &l)
	return l.Items, err
}

// clone gives a bundle that can be changed apart from b.
func (b *bundle) clone() *bundle {
	c := *b
	c.files = maps.Clone(b.files)
	c.pods, c.nodes = nil, nil
	for i := range b.pods {
		c.pods = append(c.pods, *b.pods[i].DeepCopy())
	}
	for i := range b.nodes {
		c.nodes = append(c.nodes, *b.nodes[i].DeepCopy())
	}
	c.events = slices.Clone(b.events)
	return &c
}

// tree is a bundle's files with its folders listed once, which MapFS does anew
// for every path that is no file.
type tree struct {
	fstest.MapFS
	folders map[string]fstest.MapFS
}

func (t tree) Open(name string) (fs.File, error) {
	if _, ok := t.MapFS[name]; ok {
		return t.MapFS.Open(name)
	}
	if folder, ok := t.folders[name]; ok {
		return folder.Open(".")
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// fsys is the bundle as a tree.
func (b *bundle) fsys() tree {
	b.t.Helper()
	t := tree{MapFS: fstest.MapFS{}, folders: map[string]fstest.MapFS{}}
	for file, text := range b.files {
		t.add(file, []byte(text))
	}
	list := func(resource string, items any, absent bool) {
		if absent {
			return
		}
		data, err := json.Marshal(map[string]any{"kind": "List", "apiVersion": "v1", "items": items})
		if err != nil {
			b.t.Fatal(err)
		}
		t.add("cluster/"+resource+".json", data)
	}
	list("pods", b.pods, b.pods == nil)
	list("nodes", b.nodes, b.nodes == nil)
	list("events", b.events, b.events == nil)
	return t
}

func (t tree) add(file string, data []byte) {
	entry := &fstest.MapFile{Data: data}
	t.MapFS[file] = entry
	for file != "." {
		folder := path.Dir(file)
		known := t.folders[folder] != nil
		if !known {
			t.folders[folder] = fstest.MapFS{}
		}
		t.folders[folder][path.Base(file)] = entry
		if known {
			return
		}
		file, entry = folder, &fstest.MapFile{Mode: fs.ModeDir | 0o555}
	}
}

func (b *bundle) open() *snapshot.Snapshot {
	b.t.Helper()
	s, err := snapshot.FromFS(b.fsys())
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// explain asks about the bundle's pod.
func (b *bundle) explain(o Options) report.Report {
	b.t.Helper()
	r, err := Pod(b.open(), b.pod().Namespace, b.pod().Name, o)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// explainNode asks about the bundle's node.
func (b *bundle) explainNode(o Options) report.Report {
	b.t.Helper()
	r, err := Node(b.open(), b.node, o)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *bundle) pod() *corev1.Pod { return &b.pods[0] }

// object is the bundle's node.
func (b *bundle) object() *corev1.Node { return &b.nodes[0] }

// container is a container of the pod's spec.
func (b *bundle) container(name string) *corev1.Container {
	b.t.Helper()
	k, ok := cgroup.FindContainer(b.pod(), name)
	if !ok {
		b.t.Fatalf("no container %q", name)
	}
	return k
}

// status is a container's status.
func (b *bundle) status(name string) *corev1.ContainerStatus {
	b.t.Helper()
	for _, list := range [][]corev1.ContainerStatus{b.pod().Status.InitContainerStatuses, b.pod().Status.ContainerStatuses} {
		if s := statusOf(list, name); s != nil {
			return s
		}
	}
	b.t.Fatalf("no status of container %q", name)
	return nil
}

// end is a container's last exit, which it has to have.
func (b *bundle) end(name string) *corev1.ContainerStateTerminated {
	b.t.Helper()
	s := b.status(name)
	if t := cmp.Or(s.State.Terminated, s.LastTerminationState.Terminated); t != nil {
		return t
	}
	b.t.Fatalf("container %q has not ended", name)
	return nil
}

// dir is the cgroup path of a container, or of one of the groups above.
func (b *bundle) dir(who string) string {
	qos := b.pod().Status.QOSClass
	var dir string
	var err error
	switch who {
	case kubepodsGroup:
		dir, err = cgroup.NodeAllocatableRoot(b.driver, "")
	case qosGroup:
		dir, err = cgroup.QOSPath(b.driver, "", qos)
	case podGroup:
		dir, err = cgroup.PodPath(b.driver, "", qos, cgroup.PodUID(b.pod()))
	default:
		dir = b.dir(podGroup) + "/" + b.scopeName(cgroup.ContainerID(b.status(who).ContainerID))
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return dir
}

func (b *bundle) scopeName(id string) string {
	if b.driver == cgroup.Cgroupfs {
		return id
	}
	return "cri-containerd-" + id + ".scope"
}

// samples are the indexes of the samples that the bundle has.
func (b *bundle) samples() []int {
	var out []int
	for k := range 3 {
		if _, ok := b.files[fmt.Sprintf("nodes/%s/samples/%d/at.json", b.node, k)]; ok {
			out = append(out, k)
		}
	}
	return out
}

// file is where a cgroup file of sample k stands in the bundle.
func (b *bundle) file(k int, dir, name string) string {
	return fmt.Sprintf("nodes/%s/samples/%d/root/sys/fs/cgroup%s", b.node, k, path.Join(dir, name))
}

// root is where a file that was read once stands in the bundle.
func (b *bundle) root(file string) string { return "nodes/" + b.node + "/root/" + file }

// put writes a cgroup file in every sample.
func (b *bundle) put(who, name, text string) {
	b.t.Helper()
	for _, k := range b.samples() {
		b.putAt(k, who, name, text)
	}
}

func (b *bundle) putAt(k int, who, name, text string) {
	b.t.Helper()
	b.files[b.file(k, b.dir(who), name)] = text + "\n"
}

// get is what a cgroup file of sample k holds.
func (b *bundle) get(k int, who, name string) string {
	b.t.Helper()
	text, ok := b.files[b.file(k, b.dir(who), name)]
	if !ok {
		b.t.Fatalf("no %s of %s in sample %d", name, who, k)
	}
	return text
}

// drop takes cgroup files out of every sample.
func (b *bundle) drop(who string, names ...string) {
	b.t.Helper()
	for _, k := range b.samples() {
		for _, name := range names {
			b.get(k, who, name)
			delete(b.files, b.file(k, b.dir(who), name))
		}
	}
}

// set gives keys of a flat-keyed file other values in every sample.
func (b *bundle) set(who, name string, values map[string]int64) {
	b.t.Helper()
	for _, k := range b.samples() {
		b.setAt(k, who, name, values)
	}
}

func (b *bundle) setAt(k int, who, name string, values map[string]int64) {
	b.t.Helper()
	b.files[b.file(k, b.dir(who), name)] = withKeys(b.t, b.get(k, who, name), values)
}

// withKeys changes values of a flat-keyed text, which has to have the keys.
func withKeys(t testing.TB, text string, values map[string]int64) string {
	t.Helper()
	lines := strings.Split(text, "\n")
	for key, value := range values {
		found := false
		for i, line := range lines {
			if strings.HasPrefix(line, key+" ") {
				lines[i], found = key+" "+strconv.FormatInt(value, 10), true
			}
		}
		if !found {
			t.Fatalf("no key %q", key)
		}
	}
	return strings.Join(lines, "\n")
}

// cpuCounts are what of cpu.stat the rules of throttling go by.
type cpuCounts struct{ periods, throttled, throttledUsec, usageUsec int64 }

func (c cpuCounts) keys() map[string]int64 {
	return map[string]int64{"nr_periods": c.periods, "nr_throttled": c.throttled, "throttled_usec": c.throttledUsec, "usage_usec": c.usageUsec}
}

// cpu makes a group's cpu.stat start at from and grow by by between the samples.
func (b *bundle) cpu(who string, from, by cpuCounts) {
	b.t.Helper()
	b.setAt(0, who, "cpu.stat", from.keys())
	b.setAt(1, who, "cpu.stat", cpuCounts{from.periods + by.periods, from.throttled + by.throttled, from.throttledUsec + by.throttledUsec, from.usageUsec + by.usageUsec}.keys())
}

// inherits makes cpu.stat.local of a group grow by usec between the samples.
func (b *bundle) inherits(who string, usec int64) {
	b.t.Helper()
	b.setAt(0, who, "cpu.stat.local", map[string]int64{"throttled_usec": 1000})
	b.setAt(1, who, "cpu.stat.local", map[string]int64{"throttled_usec": 1000 + usec})
}

// waits makes cpu.pressure of a group grow by usec between the samples.
func (b *bundle) waits(who string, usec int64) {
	b.t.Helper()
	line := "some avg10=0.00 avg60=0.00 avg300=0.00 total=%[1]d\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=%[1]d"
	b.putAt(0, who, "cpu.pressure", fmt.Sprintf(line, 1000))
	b.putAt(1, who, "cpu.pressure", fmt.Sprintf(line, 1000+usec))
}

// memEvents counts memory events of a group, in memory.events and in
// memory.events.local.
func (b *bundle) memEvents(who string, tree, local map[string]int64) {
	b.t.Helper()
	zero := map[string]int64{"low": 0, "high": 0, "max": 0, "oom": 0, "oom_kill": 0, "oom_group_kill": 0}
	for name, values := range map[string]map[string]int64{"memory.events": tree, "memory.events.local": local} {
		b.set(who, name, zero)
		b.set(who, name, values)
	}
}

// stand puts a container's cgroup back that was gone when the node was read: a
// copy of another one's files.
func (b *bundle) stand(name, like string) {
	b.t.Helper()
	from, to := b.dir(like)+"/", b.dir(name)+"/"
	for file, text := range maps.Clone(b.files) {
		if strings.Contains(file, from) {
			b.files[strings.Replace(file, from, to, 1)] = text
		}
	}
}

// nested makes a group below a container's.
func (b *bundle) nested(container, name string, files map[string]string) {
	b.t.Helper()
	for _, k := range b.samples() {
		for file, text := range files {
			b.files[b.file(k, b.dir(container)+"/"+name, file)] = text
		}
	}
}

// forget takes away everything below one of the bundle's folders, and says
// nothing of why it is gone.
func (b *bundle) forget(prefix string) {
	delete(b.files, "gaps.json")
	maps.DeleteFunc(b.files, func(file, _ string) bool { return file == prefix || strings.HasPrefix(file, prefix+"/") })
}

// forgetTree takes away the cgroups.
func (b *bundle) forgetTree() {
	for _, k := range b.samples() {
		b.forget(fmt.Sprintf("nodes/%s/samples/%d/root", b.node, k))
	}
}

// onlyScope leaves of the cgroups what a person sees who runs cat inside the
// container.
func (b *bundle) onlyScope(container string) {
	delete(b.files, "gaps.json")
	scope := b.dir(container) + "/"
	maps.DeleteFunc(b.files, func(file, _ string) bool {
		return strings.Contains(file, "/sys/fs/cgroup/") && !strings.Contains(file, scope)
	})
}

// oneReading leaves the last sample only.
func (b *bundle) oneReading() { b.forgetKnown(fmt.Sprintf("nodes/%s/samples/0", b.node)) }

// forgetKnown takes away what then is known not to have been there.
func (b *bundle) forgetKnown(prefix string) {
	gaps, ok := b.files["gaps.json"]
	b.forget(prefix)
	if ok {
		b.files["gaps.json"] = gaps
	}
}

// config changes fields of the kubelet's configuration; nil takes one away.
func (b *bundle) config(fields map[string]any) {
	b.t.Helper()
	file := "nodes/" + b.node + "/configz.json"
	var doc struct {
		Config map[string]any `json:"kubeletconfig"`
	}
	if err := json.Unmarshal([]byte(b.files[file]), &doc); err != nil {
		b.t.Fatal(err)
	}
	for name, value := range fields {
		if doc.Config[name] = value; value == nil {
			delete(doc.Config, name)
		}
	}
	data, err := json.Marshal(doc)
	if err != nil {
		b.t.Fatal(err)
	}
	b.files[file] = string(data)
}

// useCgroupfs renames the pod's groups as the driver cgroupfs names them.
func (b *bundle) useCgroupfs() {
	b.t.Helper()
	names := map[string]string{}
	for _, who := range []string{kubepodsGroup, qosGroup, podGroup} {
		names[b.dir(who)] = ""
	}
	old := []string{b.dir(podGroup), b.dir(qosGroup), b.dir(kubepodsGroup)}
	b.driver = cgroup.Cgroupfs
	now := []string{b.dir(podGroup), b.dir(qosGroup), b.dir(kubepodsGroup)}
	for file, text := range maps.Clone(b.files) {
		for i := range old {
			if strings.Contains(file, old[i]+"/") {
				delete(b.files, file)
				file = strings.Replace(file, old[i]+"/", now[i]+"/", 1)
				file = strings.ReplaceAll(strings.ReplaceAll(file, "cri-containerd-", ""), ".scope/", "/")
				b.files[file] = text
				break
			}
		}
	}
}

// kernelLog makes blocks of testdata/rules the whole kernel log. Their victim
// becomes the named container as the API last saw it, or where id is given the
// container of that id.
func (b *bundle) kernelLog(blocks ...string) {
	b.files["nodes/"+b.node+"/kernel.log"] = strings.Join(blocks, "")
}

// block is a kernel's report of an OOM, as recorded, with the cgroups of this
// pod in it.
func (b *bundle) block(name, id string) string {
	b.t.Helper()
	data, err := os.ReadFile("testdata/rules/" + name + ".log")
	if err != nil {
		b.t.Fatal(err)
	}
	pod, scope := b.dir(podGroup), b.scopeName(id)
	return strings.NewReplacer(
		"/kubepods.slice/kubepods-pod1.slice/cri-containerd-aaaa.scope", pod+"/"+scope,
		"/kubepods.slice/kubepods-pod9.slice/cri-containerd-a9.scope", pod+"/"+scope,
		"/kubepods.slice/kubepods-pod1.slice", pod,
		"cri-containerd-aaaa.scope", scope,
		"cri-containerd-a9.scope", scope,
		"kubepods-pod9.slice", path.Base(pod),
	).Replace(string(data))
}

// endedID is the runtime's id of the container's last exit.
func (b *bundle) endedID(name string) string {
	b.t.Helper()
	return cgroup.ContainerID(b.end(name).ContainerID)
}

// event adds an event of the pod, last seen at a moment.
func (b *bundle) event(reason, container, message string, at time.Time) {
	p := b.pod()
	o := corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID}
	if container != "" {
		o.FieldPath = "spec.containers{" + container + "}"
	}
	b.events = append(b.events, corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: p.Namespace, Name: fmt.Sprintf("%s.%d", p.Name, len(b.events))},
		InvolvedObject: o, Reason: reason, Message: message, FirstTimestamp: metav1.NewTime(at), LastTimestamp: metav1.NewTime(at), Count: 1,
	})
}

// list makes a list of resources: amounts("cpu", "1", "memory", "64Mi").
func amounts(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

// The cut down recording answers as the whole one does.
func TestRecordedIsWhole(t *testing.T) {
	for archive, pods := range map[string][]string{
		"smt2-k612/bundle": {"shop/oom", "shop/throttled", "shop/excl-a", "shop/oom-pod", "shop/sigkill"},
		"numa4-k61/bundle": {"mill/child-oom", "mill/two-app"},
	} {
		whole := openTestBundle(t, "testdata/cases/"+archive+".tar.gz")
		for _, pod := range pods {
			namespace, name, _ := strings.Cut(pod, "/")
			want, err := Pod(whole, namespace, name, Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := recorded(archive, namespace, name)(t).explain(Options{})
			for _, r := range []*report.Report{&want, &got} { // one names the pods of all processes, the other those that were placed before
				r.Findings = slices.DeleteFunc(r.Findings, func(f report.Finding) bool {
					return f.Code == report.NodeOOMNext || f.Code == report.PlacementReplayed
				})
				for i := range r.Findings {
					if r.Findings[i].Code == report.ExclusiveCPUs {
						r.Findings[i].Arithmetic = "" // the run among those that were placed before
					}
				}
			}
			a, _ := json.Marshal(want)
			b, _ := json.Marshal(got)
			if string(a) != string(b) {
				t.Errorf("%s: the cut bundle gives\n%s\nthe whole one\n%s", pod, b, a)
			}
		}
	}
}

func decimalText(n int64) string { return strconv.FormatInt(n, 10) }
