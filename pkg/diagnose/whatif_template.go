package diagnose

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helper "k8s.io/component-helpers/resource"
	"sigs.k8s.io/yaml"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// Template is a pod that could come, and where it was read.
type Template struct {
	*corev1.Pod
	// Source as evidence names it: "file:pod.yaml", "api:pods/NS/NAME".
	Source string
}

// ErrNoTemplate is for a text without any object.
var ErrNoTemplate = errors.New("no pod in it")

// Templates reads pods from YAML or JSON, several documents and Lists among
// them: Pods, PodTemplates, and the pod templates of workloads. source names
// the text in evidence.
func Templates(data []byte, source string) ([]Template, error) {
	var out []Template
	for i, document := range documents(data) {
		found, err := templatesOf([]byte(document), source, false)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		out = append(out, found...)
	}
	if len(out) == 0 {
		return nil, ErrNoTemplate
	}
	return out, nil
}

// documents cuts a YAML stream; those without content are left out.
func documents(data []byte) []string {
	var out []string
	var document strings.Builder
	content := false
	add := func() {
		if content {
			out = append(out, document.String())
		}
		document.Reset()
		content = false
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "---") && strings.Trim(line, "- \t\r\n") == "" {
			add()
			continue
		}
		text := strings.TrimSpace(line)
		content = content || text != "" && text[0] != '#'
		document.WriteString(line)
	}
	add()
	return out
}

const maxTemplates = 64

func templatesOf(document []byte, source string, nested bool) ([]Template, error) {
	var object struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              json.RawMessage        `json:"spec"`
		Template          corev1.PodTemplateSpec `json:"template"`
		Items             []json.RawMessage      `json:"items"`
	}
	asJSON, err := yaml.YAMLToJSON(document)
	if err == nil {
		if err := snapshot.CheckQuantities(asJSON); err != nil {
			return nil, err
		}
		err = yaml.Unmarshal(asJSON, &object)
	}
	if err != nil {
		return nil, fmt.Errorf("not an object in YAML or JSON: %w", err)
	}
	if strings.HasSuffix(object.Kind, "List") {
		if nested {
			return nil, errors.New("a list inside a list")
		}
		if len(object.Items) > maxTemplates {
			return nil, fmt.Errorf("%s of %d items, more than %d", object.Kind, len(object.Items), maxTemplates)
		}
		var out []Template
		for _, item := range object.Items {
			found, err := templatesOf(item, source, true)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
		return out, nil
	}
	template := object.Template
	switch object.Kind {
	case "Pod":
		template.ObjectMeta = object.ObjectMeta
		err = json.Unmarshal(object.Spec, &template.Spec)
	case "PodTemplate":
	case "CronJob":
		var spec struct {
			JobTemplate struct {
				Spec struct {
					Template corev1.PodTemplateSpec `json:"template"`
				} `json:"spec"`
			} `json:"jobTemplate"`
		}
		err = json.Unmarshal(object.Spec, &spec)
		template = spec.JobTemplate.Spec.Template
	case "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController":
		var spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		}
		err = json.Unmarshal(object.Spec, &spec)
		template = spec.Template
	case "":
		return nil, errors.New("it has no kind")
	default:
		return nil, fmt.Errorf("%q is neither a Pod nor a workload with a pod template", clip(object.Kind))
	}
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", object.Kind, clip(object.Name), err)
	}
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	if pod.Name = object.Name; pod.Name == "" {
		pod.Name = object.GenerateName
	}
	if pod.Namespace = object.Namespace; pod.Namespace == "" {
		pod.Namespace = corev1.NamespaceDefault
	}
	roundUp(pod)
	if err := valid(pod); err != nil {
		return nil, fmt.Errorf("%s %q: %w", object.Kind, clip(pod.Name), err)
	}
	return []Template{{pod, source}}, nil
}

// TemplateOf makes a template of a pod of the snapshot: another one like it.
func TemplateOf(pod *corev1.Pod) (Template, error) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels}, Spec: *pod.Spec.DeepCopy()}
	p.Spec.NodeName = ""
	roundUp(p)
	if err := valid(p); err != nil {
		return Template{}, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return Template{p, "api:pods/" + pod.Namespace + "/" + pod.Name}, nil
}

// valid refuses what the API server would, where the managers' sums hang on it,
// and amounts that these sums do not hold.
func valid(pod *corev1.Pod) error {
	if pod.Name == "" {
		return errors.New("metadata.name is missing")
	}
	if len(pod.Spec.Containers) == 0 {
		return errors.New("spec.containers is empty")
	}
	seen := map[string]bool{}
	for _, list := range []struct {
		field string
		of    []corev1.Container
	}{{"spec.initContainers", pod.Spec.InitContainers}, {"spec.containers", pod.Spec.Containers}} {
		for i := range list.of {
			c := &list.of[i]
			switch {
			case c.Name == "":
				return fmt.Errorf("%s[%d].name is missing", list.field, i)
			case seen[c.Name]:
				return fmt.Errorf("%s[%d].name %q stands twice", list.field, i, clip(c.Name))
			}
			seen[c.Name] = true
			if err := validResources(c.Resources); err != nil {
				return fmt.Errorf("%s[%s].%w", list.field, clip(c.Name), err)
			}
		}
	}
	if err := validResources(podResources(pod)); err != nil {
		return fmt.Errorf("spec.%w", err)
	}
	if err := validAmounts("spec.overhead", pod.Spec.Overhead); err != nil {
		return err
	}
	return countableRequests(pod)
}

func validResources(r corev1.ResourceRequirements) error {
	for _, list := range []struct {
		name string
		of   corev1.ResourceList
	}{{"requests", r.Requests}, {"limits", r.Limits}} {
		if err := validAmounts("resources."+list.name, list.of); err != nil {
			return err
		}
	}
	for _, name := range sortedNames(r.Requests) {
		request, limit := r.Requests[name], r.Limits[name]
		if _, limited := r.Limits[name]; limited && request.Cmp(limit) > 0 {
			return fmt.Errorf("resources.requests[%s] %s is more than the limit %s", clip(string(name)), request.String(), limit.String())
		}
	}
	return nil
}

func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	out := make([]corev1.ResourceName, 0, len(list))
	for name := range list {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// defaulted is the pod as the API server would store it, as far as the kubelet's
// admission looks at it (SetDefaults_Pod, DefaultTolerationSeconds).
func defaulted(pod *corev1.Pod, r alloc.Rules) *corev1.Pod {
	p := pod.DeepCopy()
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			requests := &list[i].Resources.Requests
			for name, q := range list[i].Resources.Limits {
				if _, has := (*requests)[name]; !has {
					if *requests == nil {
						*requests = corev1.ResourceList{}
					}
					(*requests)[name] = q.DeepCopy()
				}
			}
		}
	}
	if r.PodLevelResources && p.Spec.Resources != nil && len(p.Spec.Resources.Limits) > 0 {
		defaultPodLevel(p)
	}
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})
	}
	p.Status = corev1.PodStatus{}
	p.Status.QOSClass = alloc.QOSClass(p, r)
	return p
}

// defaultPodLevel fills in pod-level requests: the containers' sum of cpu and
// memory, else the pod's limit.
func defaultPodLevel(p *corev1.Pod) {
	requests := p.Spec.Resources.Requests
	if requests == nil {
		requests = corev1.ResourceList{}
	}
	for name, q := range helper.AggregateContainerRequests(p, helper.PodResourcesOptions{}) {
		if _, has := requests[name]; !has && (name == corev1.ResourceCPU || name == corev1.ResourceMemory) {
			requests[name] = q.DeepCopy()
		}
	}
	for name, q := range p.Spec.Resources.Limits {
		if _, has := requests[name]; !has && helper.IsSupportedPodLevelResource(name) {
			requests[name] = q.DeepCopy()
		}
	}
	p.Spec.Resources.Requests = requests
}
